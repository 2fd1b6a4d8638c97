"""The adaptor: what comes back as rows, and every way in which a server can fail, each said in one line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from collectors.prometheus import Access, Prometheus
from ranktop.fleet.source import Row
from ranktop.sample import SourceError
from support.http_answers import answering, closed_port, hanging
from support.prometheus import answered, certificate, pages, prometheus, receiving, target


def failure(url: str, seconds: float = 2.0) -> SourceError:
    with pytest.raises(SourceError) as caught:
        Prometheus(Access(url, timeout_seconds=seconds)).instant("up")
    assert "\n" not in str(caught.value)
    return caught.value


def said(error: str) -> bytes:
    return json.dumps({"status": "error", "errorType": "x", "error": error}).encode()


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b"Unauthorized", ("401", "RANKTOP_PROMETHEUS_TOKEN")),
        (400, said("parse error"), ("400", "parse error")),
        (422, said("query processing would load too many samples"), ("too many samples", "--selector")),
        (429, b"", ("429", "--interval")),
        (503, said("query timed out"), ("503", "query timed out")),
        (404, b"404 page not found", ("404", "/prometheus")),
    ],
)
def test_refusals_say_what_came_back_and_what_to_do(status: int, body: bytes, words: tuple[str, ...]) -> None:
    with answering(status, body) as url:
        problem = failure(url)
    assert problem.code == f"http_{status}"
    for word in words:
        assert word in str(problem)


def test_redirects_are_not_followed() -> None:
    with answering(302) as url:
        problem = failure(url)
    assert problem.code == "http_3xx"
    assert "http://127.0.0.1:1/elsewhere" in str(problem)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"status": "success", "data": {"result": [{"metric": {}}]}}'])
def test_answers_that_are_none(body: bytes) -> None:
    with answering(200, body) as url:
        assert failure(url).code == "bad_answer"


def test_a_closed_port_is_told_at_once() -> None:
    started = time.monotonic()
    assert failure(closed_port()).code == "refused"
    assert time.monotonic() - started < 1


def test_a_black_hole_takes_no_longer_than_its_time() -> None:
    with hanging() as url:
        started = time.monotonic()
        assert failure(url, 0.5).code == "timeout"
        assert time.monotonic() - started < 2


def test_a_body_that_never_ends_its_promise() -> None:
    with answering(200, b"{", promised_bytes=1000) as url:
        assert failure(url, 0.5).code in ("unreachable", "bad_answer", "timeout")


def test_http_where_https_was_asked_for_is_said() -> None:
    with answering(200, b"{}") as url:
        told = failure(url.replace("http:", "https:"))
    assert told.code == "tls"
    assert str(told).endswith("(is it http there?)")


def test_no_retries() -> None:
    asked: list[str] = []

    def page(path: str) -> bytes:
        asked.append(path)
        return b"no"

    with pages(page) as address:
        failure(f"http://{address}")
    assert len(asked) == 1
    assert asked[0].startswith("/api/v1/query?query=up&timeout=2s")


def test_partial_answers_carry_their_warnings() -> None:
    body = {
        "status": "success",
        "data": {"resultType": "vector", "result": [{"metric": {"instance": "a"}, "value": [1.0, "2"]}]},
        "warnings": ["store b is away"],
    }
    with answering(200, json.dumps(body).encode()) as url:
        answer = Prometheus(Access(url)).instant("up")
    assert answer.rows == (Row({"instance": "a"}, 2.0),)
    assert answer.warnings == ("store b is away",)


@pytest.mark.tools("prometheus")
@pytest.mark.xdist_group("prometheus")
def test_a_real_server_now_then_and_over_time(tmp_path: Path) -> None:
    with pages(lambda _: b"a 1\nb NaN\n") as address, prometheus(tmp_path, [target(address, "n:1")]) as url:
        source = Prometheus(Access(url + "/"))
        answered(source, "a")
        (row,) = source.instant("a").rows
        assert row.labels["instance"] == "n:1"
        assert source.instant("b").rows == ()
        assert source.instant("a", time.time() - 3600).rows == ()
        # Ends are whole seconds, so the first sample may lie behind the end.
        now = time.time() + 1
        (track,) = source.over("a", now - 30, now, 1.0)
        assert track.points[-1][1] == 1.0
        with pytest.raises(SourceError, match=r"400 .*parse error"):
            source.instant("sum(")


HASH = "$2b$04$CNzbm0X8XB22SexTCuI/DOmvGECNQ9HdK9tPoZiPtQ3Cqld7mKMwe"
"""bcrypt of `open sesame`."""


@pytest.mark.tools("prometheus", "openssl")
@pytest.mark.xdist_group("prometheus")
def test_a_real_server_behind_tls_and_users(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    web = {"tls_server_config": {"cert_file": str(cert), "key_file": str(key)}, "basic_auth_users": {"ann": HASH}}
    (tmp_path / "web.yml").write_text(yaml.safe_dump(web))
    with prometheus(tmp_path, [], web_config=tmp_path / "web.yml") as url:
        access = Access(url, user="ann", password="open sesame", ca_file=str(cert))
        (row,) = Prometheus(access).instant("vector(1)").rows
        assert row.value == 1.0
        with pytest.raises(SourceError) as wrong:
            Prometheus(replace(access, password="shut")).instant("vector(1)")
        assert wrong.value.code == "http_401"
        assert "the password of 'ann' was sent and is not accepted" in str(wrong.value)
        for given, advice in (
            ({"ca_file": None}, "--ca-file FILE of who signed it"),
            ({"cert_file": str(tmp_path / "web.yml")}, "--cert-file and --key-file: not a certificate and its key"),
            ({"url": url.replace("127.0.0.1", "localhost")}, "give the name that the certificate is for"),
        ):
            with pytest.raises(SourceError) as refused:
                Prometheus(replace(access, **given)).instant("vector(1)")
            assert refused.value.code == "tls"
            assert str(refused.value).endswith(f"({advice})")
            assert "_ssl.c" not in str(refused.value)
        with pytest.raises(SourceError) as untrusted:
            Prometheus(replace(access, ca_file=None)).instant("vector(1)")
        assert untrusted.value.code == "tls"
        with pytest.raises(SourceError) as plain:
            Prometheus(replace(access, url=url.replace("https", "http"))).instant("vector(1)")
        assert plain.value.code in ("http_400", "bad_answer")


def test_a_token_and_headers_are_sent() -> None:
    with receiving() as (url, received):
        Prometheus(Access(url, bearer="t0ken", headers={"X-Scope-OrgID": "ml"})).instant("up")
    assert (received["Authorization"], received["X-Scope-OrgID"]) == ("Bearer t0ken", "ml")
