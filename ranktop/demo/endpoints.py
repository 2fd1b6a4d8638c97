"""HTTP servers of the stand-in on 127.0.0.1: pages to read, nothing that changes anything."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import NamedTuple
from urllib.parse import urlsplit

from ranktop.demo.launch import HOST


class Reply(NamedTuple):
    """What a page answers."""

    content_type: str
    body: bytes
    status: int = 200


Page = Callable[[str], Reply]
"""Of a query: what stands behind the `?`."""


class Endpoints(ThreadingMixIn, TCPServer):
    """Bound at once, so that the port is known; it listens only after `open`, as SGLang's does."""

    # Not ThreadingHTTPServer: that one resolves its own host name when it binds.
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int) -> None:
        super().__init__((HOST, port), _Handler, bind_and_activate=False)
        self.pages: dict[str, Page] = {}
        self._is_closing = False
        self.server_bind()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def open(self, pages: dict[str, Page]) -> None:
        """Start to listen."""
        self.pages = pages
        self.server_activate()
        threading.Thread(target=self.serve_forever, name="http", daemon=True).start()

    def close(self) -> None:
        """Answer no more; a page under way is not waited for."""
        self._is_closing = True
        if self.pages:
            self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A page that is under way at the end finds its files gone."""
        if not self._is_closing:
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class _Handler(BaseHTTPRequestHandler):
    server: Endpoints  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = 10

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        page = self.server.pages.get(asked.path)
        if page is None:
            self.send_error(404)
            return
        content_type, body, status = page(asked.query)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """No access log: SGLang's log here holds what ranktop reads."""
