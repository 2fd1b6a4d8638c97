"""A router's own page: its families only."""

from __future__ import annotations

import pytest

from collectors.router import RouterCollector
from ranktop.sample import SeriesKey, SourceError
from tests.collectors.sglang_stub import stub_server

PAGE = b"""# TYPE smg_http_request_duration_seconds histogram
smg_http_request_duration_seconds_bucket{method="POST",path="/v1/chat/completions",le="1"} 3
smg_http_request_duration_seconds_bucket{method="POST",path="/v1/chat/completions",le="+Inf"} 4
smg_http_request_duration_seconds_sum{method="POST",path="/v1/chat/completions"} 5.5
smg_http_request_duration_seconds_count{method="POST",path="/v1/chat/completions"} 4
# TYPE sgl_router_requests counter
sgl_router_requests_total 9
# TYPE process_open_fds gauge
process_open_fds 1
"""


def test_a_routers_page() -> None:
    with stub_server({"/metrics": (200, PAGE)}) as stub:
        collector = RouterCollector(stub.url)
        page = collector.read(None, 5.0)
    values = dict(page.points)
    labels = (("method", "POST"), ("path", "/v1/chat/completions"))
    assert values[SeriesKey("sgl_router_requests_total")] == 9
    assert values[SeriesKey("smg_http_request_duration_seconds_count", labels)] == 4
    assert (len(values), page.other_families, collector.server) == (5, 1, stub.url)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((200, b"# TYPE a gauge\na 1\n"), "wrong_port"),
        ((200, b"<html>\n"), "bad_answer"),
        ((200, b""), "empty"),
        ((404, b""), "http_404"),
    ],
)
def test_not_a_router(answer: tuple[int, bytes], code: str) -> None:
    with stub_server({"/metrics": answer}) as stub, pytest.raises(SourceError) as caught:
        RouterCollector(stub.url).read(None, 5.0)
    assert caught.value.code == code
