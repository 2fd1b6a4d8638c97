"""A real HTTP server that answers as badly as asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


class _Handler(BaseHTTPRequestHandler):
    status: ClassVar[int] = 200
    body: ClassVar[bytes] = b""
    promised_bytes: ClassVar[int | None] = None

    def do_GET(self) -> None:
        self.send_response(self.status)
        if 300 <= self.status < 400:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        length = len(self.body) if self.promised_bytes is None else self.promised_bytes
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def answering(status: int = 200, body: bytes = b"", promised_bytes: int | None = None) -> Generator[str]:
    """The URL of a server that gives this answer to every GET."""
    handler = type("Handler", (_Handler,), {"status": status, "body": body, "promised_bytes": promised_bytes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def hanging() -> Generator[str]:
    """A port that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def closed_port() -> str:
    """A URL that refuses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}"
