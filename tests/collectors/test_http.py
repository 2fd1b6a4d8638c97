"""Every way in which an address can fail to answer is told apart, in bounded time. Real sockets throughout."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from collectors.http import bearer, failure, get, shown
from ranktop.sample import SourceError

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """serve(*chunks, pause_seconds=0) answers every connection with these bytes; gives the URL."""
    listeners: list[socket.socket] = []

    def start(*chunks: bytes, pause_seconds: float = 0.0) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=_answer, args=(listener, chunks, pause_seconds), daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def _answer(listener: socket.socket, chunks: tuple[bytes, ...], pause_seconds: float) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            try:
                connection.recv(65536)
                for chunk in chunks:
                    connection.sendall(chunk)
                    time.sleep(pause_seconds)
            except OSError:
                continue


def ok(body: bytes, length: int | None = None) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body) if length is None else length, body)


def code_of(url: str, **options: float) -> str:
    with pytest.raises(SourceError) as caught:
        get(url, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value.code


def test_a_whole_answer(serve: Serve) -> None:
    answer = get(serve(ok(b"abc")) + "/metrics?x=1")
    assert (answer.status, answer.body) == (200, b"abc")
    assert answer.url.endswith("/metrics")


def test_a_chunked_answer(serve: Serve) -> None:
    url = serve(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert get(url).body == b"abc"


def test_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert code_of(f"http://127.0.0.1:{port}") == "refused"


def test_silence_ends_at_the_deadline(serve: Serve) -> None:
    assert code_of(serve(pause_seconds=30), deadline_seconds=0.2) in ("timeout", "bad_answer")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert code_of(f"http://127.0.0.1:{listener.getsockname()[1]}", deadline_seconds=0.2) == "timeout"


@pytest.mark.parametrize("head", [b"", ok(b"", 1000)])
def test_a_drip_ends_at_the_deadline(serve: Serve, head: bytes) -> None:
    drip = [head, *([b"H"] * 200)]
    started = time.monotonic()
    assert code_of(serve(*drip, pause_seconds=0.05), deadline_seconds=0.4) == "timeout"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (ok(b"abc", 10), "truncated"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc", "truncated"),
        (b"\x00\x01nonsense\r\n\r\n", "bad_answer"),
        (b"", "bad_answer"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n", "bad_answer"),
    ],
)
def test_broken_answers(serve: Serve, answer: bytes, code: str) -> None:
    assert code_of(serve(answer)) == code


def test_an_endless_answer_is_cut(serve: Serve) -> None:
    url = serve(b"HTTP/1.1 200 OK\r\n\r\n", *([b"x" * 65536] * 64))
    assert code_of(url, max_bytes=1 << 20) == "too_big"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://a",
        "http://",
        "http://a:b/",
        "http://[::1",
        "file:///etc/passwd",
        "http://127.0.0.1/é",
        "http://127.0.0.1/a b",
    ],
)
def test_not_an_address(url: str) -> None:
    assert code_of(url) == "bad_url"


@pytest.mark.parametrize(
    ("status", "code"), [(301, "http_3xx"), (307, "http_3xx"), (401, "http_401"), (500, "http_500")]
)
def test_statuses(serve: Serve, status: int, code: str) -> None:
    url = serve(b"HTTP/1.1 %d X\r\nLocation: http://user:pw@b/metrics/\r\nContent-Length: 0\r\n\r\n" % status)
    error = failure(get(url))
    assert error.code == code
    assert "pw" not in str(error)


def test_a_url_is_shown_without_its_secrets() -> None:
    assert shown("http://me:pw@host:1/a?key=s\x1b[31m#f") == "http://host:1/a"


def test_the_key_comes_from_the_environment_or_a_file(tmp_path) -> None:
    path = tmp_path / "key"
    path.write_text("sk-file\n")
    assert bearer({}) == {}
    assert bearer({"RANKTOP_API_KEY": "sk-env"}) == {"Authorization": "Bearer sk-env"}
    assert bearer({"RANKTOP_API_KEY_FILE": str(path)}) == {"Authorization": "Bearer sk-file"}
    with pytest.raises(SourceError, match="make it readable"):
        bearer({"RANKTOP_API_KEY_FILE": str(tmp_path / "none")})
    with pytest.raises(SourceError, match="no HTTP header"):
        bearer({"RANKTOP_API_KEY": "a\r\nX: y"})
