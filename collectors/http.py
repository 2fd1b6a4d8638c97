"""One small HTTP GET for every source: a deadline over the whole exchange, a size limit, no redirect followed.

Failures are `SourceError`s whose `code` says what came back: `refused`, `unreachable`, `timeout`, `truncated`,
`too_big`, `tls`, `bad_url`, `bad_answer`. An answer of any status is an `Answer`; `failure` turns it into an error.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from collectors.own import count_request
from ranktop.sample import SourceError

MAX_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 18
_MAX_KEY_BYTES = 4096


class Answer(Struct, frozen=True):
    """What a server answered. `took_seconds` runs from before the connection to the last byte."""

    url: str
    status: int
    body: bytes
    took_seconds: float
    content_type: str = ""
    location: str | None = None


def get(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    deadline_seconds: float = 5.0,
    max_bytes: int = MAX_BYTES,
) -> Answer:
    """GET `url` within `deadline_seconds`, from the first packet to the last byte. Raises SourceError.

    Looking up a host name comes before the first packet and has the resolver's own time-out.
    """
    parts = _split(url)
    started = time.monotonic()
    connection = _Connection(parts, started + deadline_seconds)
    body = b""
    try:
        connection.request("GET", _target(parts), headers={"Connection": "close", **(headers or {})})
        response = connection.getresponse()
        body = _read_body(response, shown(url), max_bytes)
        return Answer(
            shown(url),
            response.status,
            body,
            time.monotonic() - started,
            response.headers.get("Content-Type", ""),
            response.headers.get("Location"),
        )
    except (UnicodeError, http.client.InvalidURL):
        raise SourceError(f"{shown(url)}: not an address that HTTP can carry (percent-encode it)", "bad_url") from None
    except TimeoutError:
        raise SourceError(
            f"GET {shown(url)}: no complete answer within {deadline_seconds:g} s (busy, hung, or a wrong address)",
            "timeout",
        ) from None
    except ConnectionRefusedError:
        raise SourceError(
            f"GET {shown(url)}: connection refused: nothing listens there "
            "(still loading, gone, or another --host/--port)",
            "refused",
        ) from None
    except http.client.RemoteDisconnected:
        raise SourceError(
            f"GET {shown(url)}: the connection was closed without an answer (wrong port, TLS, or a dying server)",
            "bad_answer",
        ) from None
    except http.client.HTTPException as error:
        # BadStatusLine and its kin carry bytes from outside: only the type is repeated.
        raise SourceError(
            f"GET {shown(url)}: not an HTTP answer ({type(error).__name__}); is this SGLang's HTTP port?", "bad_answer"
        ) from None
    except ConnectionError as error:
        raise SourceError(
            f"GET {shown(url)}: {error.strerror} before the answer was complete (dying or restarting?)", "truncated"
        ) from None
    except OSError as error:
        code = "tls" if type(error).__module__ == "ssl" else "unreachable"
        raise SourceError(f"GET {shown(url)}: {error.strerror or error} (check the address)", code) from None
    finally:
        connection.release()
        count_request(f"{connection.host}:{connection.port}", len(body), time.monotonic() - started)


def failure(answer: Answer) -> SourceError:
    """The error for an answer that is not 200: `http_3xx` for every redirect, else `http_<status>`."""
    tried = f"GET {answer.url}: {answer.status}"
    if 300 <= answer.status < 400:
        where = shown(answer.location) if answer.location else "no address given"
        return SourceError(f"{tried} redirect to {where}, not followed; give that address with --url", "http_3xx")
    advice = {
        401: "unauthorized: put the server's --api-key into RANKTOP_API_KEY or a file named by RANKTOP_API_KEY_FILE",
        403: "forbidden: the key in RANKTOP_API_KEY is not accepted here",
        404: "not found: this path is not served here",
        503: "not ready: the server is starting or shutting down",
    }.get(answer.status, "the server refused; its log says why")
    return SourceError(f"{tried} {advice}", f"http_{answer.status}")


def bearer(environ: Mapping[str, str] | None = None, name: str = "RANKTOP_API_KEY") -> dict[str, str]:
    """The Authorization header from `name`, or from the file that `<name>_FILE` names; {} with neither.

    Never from a flag: flags show in `ps`.
    """
    environ = os.environ if environ is None else environ
    key = environ.get(name, "")
    path = environ.get(f"{name}_FILE")
    if not key and path:
        try:
            with Path(path).open("rb") as file:
                key = file.read(_MAX_KEY_BYTES).decode("latin-1")
        except OSError as error:
            raise SourceError(f"{name}_FILE {path}: {error.strerror} (make it readable)", "bad_key_file") from None
    key = key.strip()
    if any(not 32 < ord(letter) < 127 for letter in key):
        raise SourceError(f"{name}: the key holds characters that no HTTP header can carry", "bad_key_file")
    return {"Authorization": f"Bearer {key}"} if key else {}


def shown(url: str) -> str:
    """The URL without user info, query and control characters: what may be drawn, logged or recorded."""
    try:
        parts = urlsplit(url)
        netloc = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "(unreadable URL)"
    return "".join(letter for letter in f"{parts.scheme}://{netloc}{parts.path}" if letter.isprintable())[:200]


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise SourceError(f"{shown(url)}: not an http:// or https:// address (write http://HOST:PORT)", "bad_url")


def _target(parts: SplitResult) -> str:
    path = parts.path or "/"
    return f"{path}?{parts.query}" if parts.query else path


def _read_body(response: http.client.HTTPResponse, url: str, max_bytes: int) -> bytes:
    body = bytearray()
    try:
        while chunk := response.read(_CHUNK_BYTES):
            body += chunk
            if len(body) > max_bytes:
                raise SourceError(f"GET {url}: more than {max_bytes} bytes; not read further", "too_big")
    except http.client.IncompleteRead:
        raise SourceError(f"GET {url}: the answer broke off after {len(body)} bytes", "truncated") from None
    # read(amt) of Python 3.11 does not complain of a body shorter than Content-Length.
    if response.length:
        raise SourceError(
            f"GET {url}: the answer broke off, {response.length} of {len(body) + response.length} bytes missing",
            "truncated",
        )
    return bytes(body)


class _Connection(http.client.HTTPConnection):
    """An HTTP(S) connection whose every wait ends at one deadline, so that a dripping server cannot hold us."""

    def __init__(self, parts: SplitResult, deadline: float) -> None:
        self._secure = parts.scheme == "https"
        super().__init__(parts.hostname or "", parts.port or (443 if self._secure else 80))
        self._deadline = deadline
        self._plain: socket.socket | None = None

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), timeout=_left(self._deadline))
        if self._secure:
            import ssl

            plain.settimeout(_left(self._deadline))
            plain = ssl.create_default_context().wrap_socket(plain, server_hostname=self.host)
        self._plain = plain
        self.sock = _DeadlineSocket(plain, self._deadline)

    def release(self) -> None:
        """Close the socket itself; `close` must leave it to the response that still reads."""
        self.close()
        if self._plain is not None:
            self._plain.close()


class _DeadlineSocket:
    """What http.client uses of a socket. `close` comes before the body of a `Connection: close` answer is read."""

    def __init__(self, plain: socket.socket, deadline: float) -> None:
        self._plain = plain
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        self._plain.settimeout(_left(self._deadline))
        self._plain.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self._plain, self._deadline), _CHUNK_BYTES)

    def close(self) -> None:
        pass


class _DeadlineReader(io.RawIOBase):
    def __init__(self, plain: socket.socket, deadline: float) -> None:
        self._plain = plain
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        self._plain.settimeout(_left(self._deadline))
        return self._plain.recv_into(buffer)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
