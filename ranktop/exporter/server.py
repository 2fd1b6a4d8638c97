"""The HTTP server of the exporter: one page, a thread a scrape, so many at a time."""

from __future__ import annotations

import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

from ranktop.exporter.page import CONTENT_TYPE, Pages
from ranktop.exporter.webconfig import Users

_CLIENT_SECONDS = 10.0
_MAX_SCRAPES = 256
_BACKLOG = 128
_LANDING = b"<html><title>ranktop</title><body><a href='/metrics'>metrics</a></body></html>\n"


class MetricsServer(ThreadingHTTPServer):
    """Serves `pages` on an address (port 0: a free one). OSError when the address cannot be had.

    A client that dawdles, with its TLS handshake too, holds one of `_MAX_SCRAPES` places and never the thread that
    accepts. Who comes when all are taken is turned away.
    """

    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(
        self, host: str, port: int, pages: Pages, *, tls: ssl.SSLContext | None = None, users: Users | None = None
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        self.users = users
        self._tls = tls
        self._places = threading.BoundedSemaphore(_MAX_SCRAPES)
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self.server_address[:2]
        shown = f"[{host}]" if self.address_family == socket.AF_INET6 else host
        return f"{'https' if self._tls else 'http'}://{shown}:{port}/metrics"

    def start(self) -> None:
        """Serve from a thread of its own until `server_close`."""
        threading.Thread(target=self.serve_forever, name="ranktop exporter", daemon=True).start()

    def stop(self) -> None:
        """Answer nobody any more."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(_CLIENT_SECONDS)
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        with self._tls.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away or speaks no TLS is no event."""


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version = "ranktop"
    sys_version = ""
    timeout = _CLIENT_SECONDS

    _pages: ClassVar[dict[str, str]] = {"/": "text/html; charset=utf-8", "/metrics": CONTENT_TYPE}

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if self.server.users is not None and not self.server.users.admit(self.headers.get("Authorization")):
            self._answer(401, b"unauthorized\n", {"WWW-Authenticate": 'Basic realm="ranktop"'})
        elif path not in self._pages:
            self._answer(404, b"not found: the page is /metrics\n")
        elif path == "/":
            self._answer(200, _LANDING, {"Content-Type": self._pages[path]})
        else:
            self._metrics("gzip" in self.headers.get("Accept-Encoding", ""))

    def _metrics(self, compressed: bool) -> None:
        body = self.server.pages.get(compressed)
        if body is None:
            self._answer(503, b"no sample yet\n")
            return
        headers = {"Content-Type": CONTENT_TYPE}
        if compressed:
            headers["Content-Encoding"] = "gzip"
        self._answer(200, body, headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are not logged."""
