"""Latency from admission by a router's histograms."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.reconcile.routers import admission_latency, router_digest
from ranktop.sample import MetricsPage, SeriesKey


def page(family: str, path: str, *counts: float) -> MetricsPage:
    keys = tuple(SeriesKey(f"{family}_bucket", (("le", bound), ("path", path))) for bound in ("1", "2", "+Inf"))
    return MetricsPage("r", 0.0, 0.0, 0, keys, counts)


@pytest.mark.parametrize("family", ["smg_http_request_duration_seconds", "sgl_router_request_duration_seconds"])
def test_of_the_window(family: str) -> None:
    before, after = page(family, "/generate", 50, 50, 50), page(family, "/generate", 50, 60, 60)
    assert admission_latency(before, after).p50 == 1.5
    assert admission_latency(None, after).p50 == pytest.approx(0.6)


def test_a_router_that_restarted() -> None:
    family = "smg_http_request_duration_seconds"
    assert admission_latency(page(family, "/generate", 50, 90, 90), page(family, "/generate", 60, 60, 60)).p50 == 0.5


def test_paths_that_generate_nothing_and_other_pages() -> None:
    assert admission_latency(None, page("smg_http_request_duration_seconds", "/health", 5, 5, 5)).p50 is None
    assert admission_latency(None, page("other_seconds", "/generate", 5, 5, 5)).p50 is None


def test_a_page_is_read_once() -> None:
    family = "smg_http_request_duration_seconds"
    first = router_digest(None, page(family, "/generate", 50, 50, 50))
    assert router_digest(first, first.page) is first
    later = replace(page(family, "/generate", 50, 60, 60), at_unix_seconds=5.0)
    assert router_digest(first, later).latency.p50 == 1.5
