"""The metrics collector against a real HTTP server: values, cadence, and every bad answer with its code."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from collectors.metrics import AFTER_TIMEOUT_SECONDS, DEFAULT_PERIOD_SECONDS, MetricsCollector, page_url
from ranktop.sample import Processes, SeriesKey, ServerProcess, SourceError
from tests.collectors.sglang_stub import stub_server

PAGE = b"""# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{tp_rank="0"} 4.0
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total 12
"""
MODEL_INFO = b'{"model_path": "m"}'


def test_a_page() -> None:
    with stub_server({"/metrics": (200, PAGE)}) as stub:
        page = MetricsCollector("a:1", stub.url).read(None, 1000.0)
    assert page.points == ((SeriesKey("sglang:num_running_reqs", (("tp_rank", "0"),)), 4.0),)
    assert (page.server, page.size_bytes, page.other_families) == ("a:1", len(PAGE), 1)
    assert 1000.0 < page.at_unix_seconds == pytest.approx(1000.0 + page.took_seconds)
    path, headers = stub.asked[0]
    assert path == "/metrics"
    assert headers["Accept"] == "text/plain;version=0.0.4"
    assert "gzip" not in headers["Accept-Encoding"]


def test_the_cadence_follows_the_response_time() -> None:
    with stub_server({"/metrics": (200, PAGE)}) as stub:
        collector = MetricsCollector("a:1", stub.url)
        assert collector.period_seconds == DEFAULT_PERIOD_SECONDS
        collector.read(None, 0.0)
        collector._took_seconds = 0.22
        assert collector.period_seconds == pytest.approx(22.0)


def test_scrapes_do_not_pile_up_on_a_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.metrics._DEADLINE_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        collector = MetricsCollector("a:1", f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(SourceError) as caught:
            collector.read(None, 0.0)
    assert caught.value.code == "timeout"
    assert collector.period_seconds == AFTER_TIMEOUT_SECONDS


@pytest.mark.parametrize(("is_other", "hint"), [(True, True), (False, False), (None, False)])
def test_a_server_in_another_network_namespace(
    monkeypatch: pytest.MonkeyPatch, is_other: bool | None, hint: bool
) -> None:
    monkeypatch.setattr("collectors.metrics.is_other_network", lambda pid: is_other)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    main = ServerProcess(id="a:1", pid=42, start_ticks=1, url=url)
    with pytest.raises(SourceError) as caught:
        MetricsCollector("a:1", url).read(Processes(servers=(main,)), 0.0)
    assert caught.value.code == "refused"
    assert ("network namespace" in str(caught.value)) is hint


def test_it_is_known_whether_the_page_answers() -> None:
    answers = {"/metrics": (500, b"")}
    with stub_server(answers) as stub:
        collector = MetricsCollector("a:1", stub.url)
        assert collector.is_failing is False
        with pytest.raises(SourceError):
            collector.read(None, 0.0)
        assert collector.is_failing is True
        answers["/metrics"] = (200, PAGE)
        collector.read(None, 0.0)
        assert collector.is_failing is False


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"/model_info": (200, MODEL_INFO)}, "http_404"),
        ({"/model_info": (401, b"")}, "http_404"),
        ({}, "wrong_port"),
        ({"/model_info": (200, b"<html>")}, "wrong_port"),
        ({"/metrics": (401, b"")}, "http_401"),
        ({"/metrics": (307, b"")}, "http_3xx"),
        ({"/metrics": (500, b"")}, "http_500"),
        ({"/metrics": (200, b"")}, "empty"),
        ({"/metrics": (200, b"\n")}, "empty"),
        ({"/metrics": (200, b"<html>hello</html>\n")}, "empty"),
        ({"/metrics": (200, b"# TYPE node_load1 gauge\nnode_load1 1\n")}, "wrong_port"),
        ({"/metrics": (200, PAGE[:-1])}, "truncated"),
    ],
)
def test_bad_answers(answers: dict[str, tuple[int, bytes]], code: str) -> None:
    with stub_server(answers) as stub, pytest.raises(SourceError) as caught:
        MetricsCollector("a:1", stub.url).read(None, 0.0)
    assert caught.value.code == code
    assert str(caught.value).startswith("GET http://127.0.0.1:")
    assert "\n" not in str(caught.value)


def test_a_page_with_families_but_no_sample_yet_is_a_page() -> None:
    with stub_server({"/metrics": (200, b"# TYPE sglang:num_running_reqs gauge\n")}) as stub:
        assert MetricsCollector("a:1", stub.url).read(None, 0.0).points == ()


@pytest.mark.parametrize(
    ("url", "base", "page"),
    [
        ("http://a:1", "http://a:1", "http://a:1/metrics"),
        ("http://a:1/", "http://a:1", "http://a:1/metrics"),
        ("http://a:1/metrics/", "http://a:1", "http://a:1/metrics/"),
        ("http://a:1/x/metrics?y=1", "http://a:1/x", "http://a:1/x/metrics?y=1"),
    ],
)
def test_page_url(url: str, base: str, page: str) -> None:
    assert page_url(url) == (base, page)


@pytest.mark.shared
def test_every_sample_is_a_page(shared: Path) -> None:
    for path in sorted((shared / "samples").glob("*.prom")):
        with stub_server({"/metrics": (200, path.read_bytes())}) as stub:
            assert len(MetricsCollector("a:1", stub.url).read(None, 0.0).points) > 100, path.name
