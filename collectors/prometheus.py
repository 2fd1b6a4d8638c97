"""A Prometheus server through prometheus-api-client, with what that library leaves to its user.

A deadline over the whole answer and a size limit (the library waits for ever), no retries (it tries three times by
default: 14 s on a black hole), no redirects, warnings of partial answers (it drops them). Only `/api/v1/query` and
`/api/v1/query_range` are called, by GET, in PromQL that Thanos, Mimir and VictoriaMetrics understand too.

Failures are `SourceError`s: `refused`, `unreachable`, `timeout`, `tls`, `too_big`, `bad_answer`, `http_<status>`.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import requests
from msgspec import Struct
from prometheus_api_client.exceptions import PrometheusApiClientException
from prometheus_api_client.prometheus_connect import PrometheusConnect
from requests.auth import AuthBase
from urllib3.exceptions import ReadTimeoutError
from urllib3.util.retry import Retry

from collectors.http import shown
from ranktop.fleet.source import Answer, Row, Track
from ranktop.sample import SourceError

MAX_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16
_WARNINGS_WITHIN = 4096
_Told = TypeVar("_Told")


class Access(Struct, frozen=True):
    """How to reach a server. `headers` for tenants (`X-Scope-OrgID`), secrets never from a flag."""

    url: str
    bearer: str | None = None
    user: str | None = None
    password: str | None = None
    headers: dict[str, str] = {}
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout_seconds: float = 5.0

    def __repr__(self) -> str:
        """Without secrets: a traceback may show it."""
        return f"Access({shown(self.url)})"


class Prometheus:
    """A `QuerySource`. For one thread at a time."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._shown = shown(access.url)
        self._deadline = math.inf
        self._warnings: tuple[str, ...] = ()
        session = requests.Session()
        # No credentials from ~/.netrc: what is sent is what was given.
        session.trust_env = False
        session.verify = access.ca_file or True
        if access.cert_file:
            session.cert = (access.cert_file, access.key_file) if access.key_file else access.cert_file
        session.hooks["response"].append(self._read)
        basic = (access.user, access.password or "") if access.user is not None else None
        self._client = PrometheusConnect(
            url=access.url.rstrip("/"),
            headers=dict(access.headers),
            auth=_Bearer(access.bearer) if access.bearer else basic,  # pyright: ignore[reportArgumentType]
            session=session,
            retry=Retry(total=0),
        )

    def instant(self, query: str, at_unix_seconds: float | None = None) -> Answer:
        moment = {} if at_unix_seconds is None else {"time": f"{at_unix_seconds:.3f}"}
        rows = self._ask(lambda seconds: _rows(self._client.custom_query(query, moment | self._limit(), seconds)))
        return Answer(rows, self._warnings)

    def over(self, query: str, start: float, end: float, step_seconds: float) -> Sequence[Track]:
        span = datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)
        step = f"{step_seconds:g}"
        return self._ask(
            lambda seconds: _tracks(self._client.custom_query_range(query, *span, step, self._limit(), seconds))
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _limit(self) -> dict[str, str]:
        """The server gives a query up when nobody waits for it any more."""
        return {"timeout": f"{self._access.timeout_seconds:g}s"}

    def _ask(self, question: Callable[[Any], _Told]) -> _Told:
        seconds = self._access.timeout_seconds
        self._deadline = time.monotonic() + seconds
        self._warnings = ()
        try:
            return question(seconds)
        except (requests.exceptions.Timeout, TimeoutError):
            raise self._too_late() from None
        except requests.exceptions.SSLError as problem:
            raise SourceError(f"{self._shown}: TLS: {_about_tls(str(_innermost(problem)))}", "tls") from None
        except requests.exceptions.ChunkedEncodingError as problem:
            said = _said(_innermost(problem))
            raise SourceError(f"{self._shown}: {said} (is it https there?)", "unreachable") from None
        except requests.exceptions.ConnectionError as problem:
            cause = _innermost(problem)
            if isinstance(cause, TimeoutError | ReadTimeoutError):
                raise self._too_late() from None
            code = "refused" if isinstance(cause, ConnectionRefusedError) else "unreachable"
            raise SourceError(f"{self._shown}: {_said(cause)} (is Prometheus up?)", code) from None
        except (requests.exceptions.RequestException, PrometheusApiClientException) as problem:
            raise SourceError(f"{self._shown}: {type(problem).__name__}: {problem}"[:400], "bad_answer") from None
        except (KeyError, TypeError, ValueError):
            raise SourceError(
                f"{self._shown}: not an answer of Prometheus's API (a proxy, a wrong path?)", "bad_answer"
            ) from None

    def _too_late(self) -> SourceError:
        seconds = self._access.timeout_seconds
        return SourceError(
            f"{self._shown}: no complete answer within {seconds:g} s (busy, or a wrong address)", "timeout"
        )

    def _read(self, response: requests.Response, *_: Any, **__: Any) -> None:
        """Runs before the library sees the answer: bounds its body, and says what a refusal said."""
        body = bytearray()
        for chunk in response.iter_content(_CHUNK_BYTES):
            body += chunk
            if len(body) > MAX_BYTES:
                raise SourceError(f"{self._shown}: the answer is larger than {MAX_BYTES >> 20} MiB", "too_big")
            if time.monotonic() > self._deadline:
                raise TimeoutError
        # The library reads `content`, which is gone once it was iterated over.
        response._content = bytes(body)
        if response.status_code != 200:
            raise self._refusal(response.status_code, response.headers, bytes(body))
        if b'"warnings"' in body[:_WARNINGS_WITHIN] or b'"warnings"' in body[-_WARNINGS_WITHIN:]:
            self._warnings = msgspec.json.decode(body, type=_Warned).warnings

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> SourceError:
        if 300 <= status < 400:
            where = shown(headers.get("Location", ""))
            return SourceError(
                f"{self._shown}: {status} redirect to {where}, not followed; give that address", "http_3xx"
            )
        try:
            said = msgspec.json.decode(body, type=_Refused).error
        except msgspec.DecodeError:
            said = ""
        advice = _ADVICE.get(status, "its log says why")
        if status == 401 and (self._access.bearer or self._access.user is not None):
            sent = "the token" if self._access.bearer else f"the password of {self._access.user!r}"
            advice = f"{sent} was sent and is not accepted"
        return SourceError(f"{self._shown}: {status} {said[:200] or 'refused'} ({advice})", f"http_{status}")


_ADVICE = {
    400: "this server does not understand the query",
    401: "set RANKTOP_PROMETHEUS_TOKEN, or --user and RANKTOP_PROMETHEUS_PASSWORD",
    403: "these credentials may not query",
    404: "not Prometheus's API: Mimir and VictoriaMetrics want a path, like /prometheus",
    422: "the query takes more than this server allows: narrow it with --selector",
    429: "too many queries: a larger --interval",
    503: "the server is starting, overloaded, or gave the query up",
}


def _rows(result: Any) -> tuple[Row, ...]:
    return tuple(Row(series["metric"], value) for series in result if math.isfinite(value := float(series["value"][1])))


def _tracks(result: Any) -> tuple[Track, ...]:
    return tuple(Track(series["metric"], tuple(_finite(series["values"]))) for series in result)


def _finite(values: Any) -> Iterator[tuple[float, float]]:
    return ((float(at), number) for at, value in values if math.isfinite(number := float(value)))


class _Warned(Struct):
    warnings: tuple[str, ...] = ()


class _Refused(Struct):
    error: str = ""


class _Bearer(AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        r.headers["Authorization"] = f"Bearer {self._token}"
        return r


def _innermost(problem: BaseException) -> BaseException:
    """The cause below the wrappers of requests and urllib3."""
    while True:
        inner = getattr(problem, "reason", None) or next(
            (argument for argument in problem.args if isinstance(argument, BaseException)), None
        )
        if not isinstance(inner, BaseException):
            inner = problem.__cause__ or problem.__context__
        if not isinstance(inner, BaseException):
            return problem
        problem = inner


def _about_tls(told: str) -> str:
    """OpenSSL's words, with what to do about them; without its own source line."""
    told = re.sub(r" \(_ssl\.c:\d+\)$", "", told)
    return f"{told} ({next((advice for words, advice in _TLS_ADVICE if words in told), 'see its log')})"


_TLS_ADVICE = (
    ("WRONG_VERSION_NUMBER", "is it http there?"),
    ("RECORD_LAYER_FAILURE", "is it http there?"),
    ("ostname mismatch", "give the name that the certificate is for"),
    ("IP address mismatch", "give the name that the certificate is for"),
    ("expired", "a new certificate is needed there"),
    ("CERTIFICATE_VERIFY_FAILED", "--ca-file FILE of who signed it"),
    ("NO_CERTIFICATE_OR_CRL_FOUND", "--ca-file holds no certificate"),
    ("PEM lib", "--cert-file and --key-file: not a certificate and its key"),
    ("KEY_VALUES_MISMATCH", "--key-file is not the key of --cert-file"),
    ("CERTIFICATE_REQUIRED", "--cert-file and --key-file"),
)


def _said(cause: BaseException) -> str:
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__


def host_of(url: str) -> str:
    """`prometheus:9090` of an address, for titles."""
    return urlsplit(url).netloc.rpartition("@")[2]
