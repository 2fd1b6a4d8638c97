"""A real Prometheus on loopback, and a synthetic fleet for it to scrape."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from ranktop.fleet.source import QuerySource
from ranktop.sample import SourceError

START_SECONDS = 60.0

Target = dict[str, Any]
"""One entry of `static_configs`."""


def target(address: str, instance: str | None = None, path: str = "/metrics", **labels: str) -> Target:
    """A scrape target; `instance` names it otherwise than by its address."""
    named = {} if instance is None else {"instance": instance}
    return {"targets": [address], "labels": {"__metrics_path__": path, **named, **labels}}


@contextmanager
def prometheus(
    folder: Path,
    targets: Sequence[Target],
    *,
    scrape_seconds: float = 1.0,
    rules: Path | None = None,
    web_config: Path | None = None,
) -> Generator[str]:
    """The URL of a Prometheus that scrapes these targets. Its data goes with `folder`. With a web config: https."""
    config = {
        "global": {"scrape_interval": f"{scrape_seconds:g}s", "evaluation_interval": f"{scrape_seconds:g}s"},
        "scrape_configs": [{"job_name": "ranktop", "static_configs": list(targets)}],
        "rule_files": [str(rules)] if rules is not None else [],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={url.removeprefix('http://')}",
        "--log.level=error",
    ]
    if web_config is not None:
        command.append(f"--web.config.file={web_config}")
        url = url.replace("http:", "https:")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: _is_ready(url), what="Prometheus ready")
        yield url
    finally:
        process.terminate()
        process.wait(20)


def wait_until(done: Callable[[], Any], seconds: float = START_SECONDS, what: str = "what was waited for") -> Any:
    """The first true answer."""
    deadline = time.monotonic() + seconds
    while not (answer := done()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)
    return answer


def answered(source: QuerySource, query: str, rows: int = 1, seconds: float = START_SECONDS) -> None:
    """Wait until a query has so many rows."""

    def enough() -> bool:
        try:
            return len(source.instant(query).rows) >= rows
        except SourceError:
            return False

    wait_until(enough, seconds, query)


@contextmanager
def pages(text: Callable[[str], bytes]) -> Generator[str]:
    """`HOST:PORT` of a server whose answer to a GET of a path is `text(path)`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with _served(Handler) as address:
        yield address


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def receiving() -> Generator[tuple[str, dict[str, str]]]:
    """A server that answers every query with nothing, and the headers of the last one."""
    received: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.update(self.headers.items())
            body = b'{"status": "success", "data": {"result": []}}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with _served(Handler) as address:
        yield f"http://{address}", received


def api(url: str, path: str) -> Any:
    """The `data` of a GET below /api/v1."""
    with urllib.request.urlopen(f"{url}/api/v1/{path}", timeout=10) as response:
        return json.load(response)["data"]


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _is_ready(url: str) -> bool:
    """Behind TLS and users too: the tests ask for nothing secret there."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=2, context=unchecked) as response:
            return response.status == 200
    except urllib.error.HTTPError as error:
        return error.code == 401
    except OSError:
        return False
