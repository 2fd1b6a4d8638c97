"""A real HTTP server that answers GET paths with given bodies, and notes what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Stub:
    """`answers` maps a path without its query to (status, body); anything else is 404."""

    def __init__(self, answers: dict[str, tuple[int, bytes]]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.url = ""

    def answer(self, path: str) -> tuple[int, bytes]:
        """What a GET of this path gets."""
        return self.answers.get(path.partition("?")[0], (404, b'{"detail":"Not Found"}'))


@contextmanager
def stub_server(answers: dict[str, tuple[int, bytes]]) -> Iterator[Stub]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    stub = Stub(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stub.asked.append((self.path, dict(self.headers)))
            status, body = stub.answer(self.path)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", self.path + "/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
