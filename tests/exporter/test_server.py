"""The exporter's HTTP: what it answers, TLS, users, and who cannot hold it up."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ranktop.exporter.page import CONTENT_TYPE, Pages
from ranktop.exporter.server import MetricsServer
from ranktop.exporter.webconfig import Users, WebConfigError, load_web_config, tls_context
from support import fleet
from support.prometheus import certificate

USER = "scraper"


@contextmanager
def serving(pages: Pages | None = None, **options: object) -> Iterator[MetricsServer]:
    if pages is None:
        pages = Pages()
        pages.put(fleet.healthy())
    server = MetricsServer("127.0.0.1", 0, pages, **options)  # type: ignore[arg-type]
    server.start()
    try:
        yield server
    finally:
        server.stop()


def get(
    url: str, headers: dict[str, str] | None = None, context: ssl.SSLContext | None = None
) -> tuple[int, bytes, str]:
    request = urllib.request.Request(url, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as response:
            return response.status, response.read(), response.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        return error.code, error.read(), ""


def test_the_page_plain_and_compressed() -> None:
    with serving() as server:
        status, body, kind = get(server.url)
        assert (status, kind) == (200, CONTENT_TYPE)
        assert body == fleet.page(fleet.healthy())
        assert gzip.decompress(get(server.url, {"Accept-Encoding": "gzip"})[1]) == body


def test_other_paths_and_the_time_before_the_first_sample() -> None:
    with serving(Pages()) as server:
        assert get(server.url)[0] == 503
        assert get(server.url.replace("/metrics", "/secret"))[0] == 404
        assert b"/metrics" in get(server.url.replace("/metrics", "/"))[1]


def test_clients_that_say_nothing_hold_nobody_up() -> None:
    with serving() as server:
        idle = [socket.create_connection(server.server_address[:2]) for _ in range(40)]
        started = time.monotonic()
        assert get(server.url)[0] == 200
        assert time.monotonic() - started < 5
        for connection in idle:
            connection.close()


def test_a_hundred_scrapes_at_once_are_all_answered() -> None:
    with serving() as server:
        answers: list[int] = []
        threads = [threading.Thread(target=lambda: answers.append(get(server.url)[0])) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert answers == [200] * 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A web configuration with its certificate."""
    folder = tmp_path_factory.mktemp("tls")
    certificate(folder)
    (folder / "web.yml").write_text("tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n")
    return folder


@pytest.mark.tools("openssl")
def test_tls_and_a_client_that_speaks_none(folder: Path) -> None:
    context = tls_context(load_web_config(folder / "web.yml"), folder)
    with serving(tls=context) as server:
        trusting = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        assert get(server.url, context=trusting)[0] == 200
        with pytest.raises(OSError):
            get(server.url.replace("https", "http"))
        silent = socket.create_connection(server.server_address[:2])
        assert get(server.url, context=trusting)[0] == 200
        silent.close()


def test_users_by_bcrypt() -> None:
    bcrypt = pytest.importorskip("bcrypt")
    users = Users({USER: bcrypt.hashpw(b"open sesame", bcrypt.gensalt(4)).decode()})

    def basic(user: str, password: str) -> dict[str, str]:
        import base64

        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}

    with serving(users=users) as server:
        assert get(server.url)[0] == 401
        assert get(server.url, basic(USER, "wrong"))[0] == 401
        assert get(server.url, basic("nobody", "open sesame"))[0] == 401
        assert get(server.url, {"Authorization": "Basic !!!"})[0] == 401
        for _ in range(2):
            assert get(server.url, basic(USER, "open sesame"))[0] == 200


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("basic_auth_users: {a: secret}", "not a bcrypt hash"),
        ("rate_limit: {}", "rate_limit"),
        ("tls_server_config: {cert_file: a.pem}", "key_file"),
        ("a: [", "cannot be read as YAML"),
        ("- 1", "Expected `object`"),
    ],
)
def test_a_web_config_that_cannot_be_used_says_why(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "web.yml"
    path.write_text(text)
    with pytest.raises(WebConfigError, match=says):
        load_web_config(path)


def test_a_web_config_that_names_missing_files_says_so(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text("tls_server_config: {cert_file: a.pem, key_file: b.pem}")
    with pytest.raises(WebConfigError, match=r"a\.pem and b\.pem: .*No such file"):
        tls_context(load_web_config(path), tmp_path)
