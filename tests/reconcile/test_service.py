"""Latency quantiles of the window, queues once a group."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktop.reconcile.histograms import buckets, mean, quantile
from ranktop.reconcile.series import Series, window
from ranktop.reconcile.service import acceptance, active_requests, load, service
from tests.reconcile.pages import between, page, sample_page

INF = float("inf")


@pytest.mark.parametrize(
    ("counts", "share", "value"),
    [
        ({1.0: 0, 2.0: 10, INF: 10}, 0.5, 1.5),
        ({1.0: 10, 2.0: 10, INF: 10}, 0.5, 0.5),
        ({1.0: 5, 2.0: 10, INF: 10}, 0.75, 1.5),
        ({1.0: 5, 2.0: 5, INF: 10}, 0.99, 2.0),
        ({1.0: 5, 2.0: 4, INF: 10}, 0.5, 1.0),
        ({1.0: 10, INF: 10}, 1.0, 1.0),
        ({-1.0: 10, INF: 10}, 0.5, -1.0),
        ({1.0: 0, INF: 0}, 0.5, None),
        ({}, 0.5, None),
    ],
)
def test_quantile(counts: dict[float, float], share: float, value: float | None) -> None:
    assert quantile(counts, share) == value


@given(st.dictionaries(st.floats(min_value=0, allow_nan=False), st.integers(0, 1000), max_size=8), st.floats(0, 1))
def test_a_quantile_lies_within_the_bounds(counts: dict[float, float], share: float) -> None:
    value = quantile(counts, share)
    if any(counts.values()):
        assert value is not None
        assert 0 <= value <= max((bound for bound in counts if bound != INF), default=0)
    else:
        assert value is None


TTFT = """*time_to_first_token_seconds_bucket{{is_streaming="{s}",le="1.0"}} {0}
*time_to_first_token_seconds_bucket{{is_streaming="{s}",le="2.0"}} {1}
*time_to_first_token_seconds_bucket{{is_streaming="{s}",le="+Inf"}} {1}
*time_to_first_token_seconds_sum{{is_streaming="{s}"}} {2}
*time_to_first_token_seconds_count{{is_streaming="{s}"}} {1}
"""


def test_a_quantile_is_of_the_window_and_not_since_the_start() -> None:
    before = page(TTFT.format(1000, 1000, 100, s="true"))
    after = page(TTFT.format(1000, 1010, 115, s="true") + TTFT.format(0, 10, 15, s="false"), 5.0)
    assert service(*between(before, after)).ttft_seconds.p50 == 1.5
    assert (service(*between(None, after)).ttft_seconds.p50 or 9) < 0.6
    gains = window(before, after)
    assert buckets(gains, "sglang:time_to_first_token_seconds") == {1.0: 0, 2.0: 20, INF: 20}
    assert mean(gains, "sglang:time_to_first_token_seconds") == 1.5


def test_no_request_in_the_window_is_no_latency() -> None:
    same = TTFT.format(5, 9, 9, s="true")
    assert service(*between(page(same), page(same, 5.0))).ttft_seconds.p50 is None


@pytest.mark.shared
def test_genuine_pages(shared: Path) -> None:
    second, third = (sample_page(shared, f"0.5.18_tp8_allsched_hicache_l2l3_scrape{n}", n * 10.0) for n in (2, 3))
    found = service(*between(second, third))
    assert (found.running, found.queued, found.http_active) == (18, 2, None)
    assert found.tokens_per_second == pytest.approx(3600 / 10)
    assert found.ttft_seconds.p50 is not None
    assert service(*between(None, third)).tokens_per_second == pytest.approx(1231.5)
    spec = acceptance(window(second, third))
    assert (spec.length_tokens, spec.ratio) == (2.81, 0.603)


@pytest.mark.shared
@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_load_of_a_window(shared: Path, version: str) -> None:
    second, third = (sample_page(shared, f"{version}_tp8_default_rank0_scrape{n}", n * 10.0) for n in (2, 3))
    found = load(window(second, third), 10.0, version)
    assert (found.requests_per_second, found.prompt_tokens_per_second) == (1.2, 24_600)
    assert found.retracted_requests == 1
    assert found.mean_queue_seconds is not None
    assert load(window(None, third), None, version).requests_per_second is None
    assert load(window(None, second), None, version).retracted_requests == 0


def test_a_counter_that_is_not_there_yet_is_zero_only_where_the_version_has_it() -> None:
    nothing = window(None, page("*token_usage 0"))
    assert load(nothing, 5.0, "0.5.18").aborted_requests == 0
    assert load(nothing, 5.0, None).aborted_requests is None


def test_http_requests_that_generate() -> None:
    text = '*http_requests_active{{endpoint="{0}",method="POST"}} 3\n*http_requests_active{{endpoint="/metrics"}} 1'
    assert active_requests(Series(page(text.format("/v1/chat/completions")))) == 3
    assert active_requests(Series(page(text.format("/server_info")))) == 0
    assert active_requests(Series(page("*token_usage 0"))) is None
