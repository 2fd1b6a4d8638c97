"""How a server serves: latencies of the window, throughput, queues, acceptance, and whether its gauges still move."""

from __future__ import annotations

from msgspec import Struct

from ranktop.reconcile.families import FAMILIES
from ranktop.reconcile.histograms import latency, mean
from ranktop.reconcile.series import Series, seconds_between, window
from ranktop.reconcile.verdict import Service
from ranktop.sample import MetricsPage

_GENERATING = (
    "/generate",
    "/v1/completions",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/embeddings",
    "/v1/score",
    "/v1/rerank",
    "/api/generate",
    "/api/chat",
    "/encode",
    "/classify",
    "/invocations",
    "/vertex_generate",
)
_STATS_NAMES = frozenset(
    name for family in FAMILIES.values() if family.writer == "stats" for name in family.series_names
)


class Acceptance(Struct, frozen=True):
    """Speculative decoding. `length_tokens`: accepted and bonus tokens a step, `ratio`: accepted drafts of all."""

    length_tokens: float | None = None
    ratio: float | None = None
    verify_steps: float | None = None
    """Verify steps in the window, None where they are not counted."""


class Load(Struct, frozen=True):
    """What a server took on in the window. Rates are None without a page before; requests are counted once a group."""

    requests_per_second: float | None = None
    prompt_tokens_per_second: float | None = None
    mean_queue_seconds: float | None = None
    retracted_requests: int | None = None
    """None before the first: the counter does not exist until then."""
    aborted_requests: int | None = None
    window_seconds: float | None = None


def load(gains: Series, seconds: float | None) -> Load:
    """Requests, queue time and retractions of a window (`series.window`); totals when there is no page before."""
    requests, prompt = gains.total("sglang:num_requests_total"), gains.total("sglang:prompt_tokens_total")
    return Load(
        None if requests is None or seconds is None else requests / seconds,
        None if prompt is None or seconds is None else prompt / seconds,
        # Every rank of a group observes the same requests, so the mean over all is the mean of one.
        mean(gains, "sglang:queue_time_seconds"),
        _whole(gains.most_over_groups("sglang:num_retracted_requests_total")),
        _whole(gains.total("sglang:num_aborted_requests_total")),
        seconds,
    )


def service(previous: MetricsPage | None, current: MetricsPage, gains: Series | None = None) -> Service:
    """Latencies of the window (of all time when there is no page before), queues as they stand.

    `gains` is `series.window` of the two pages, for a caller that has it already.
    """
    gains = gains or window(previous, current)
    return Service(
        ttft_seconds=latency(gains, "sglang:time_to_first_token_seconds"),
        inter_token_seconds=latency(gains, "sglang:inter_token_latency_seconds"),
        e2e_seconds=latency(gains, "sglang:e2e_request_latency_seconds"),
        tokens_per_second=_tokens_per_second(gains, seconds_between(previous, current)),
        running=_whole(gains.over_groups("sglang:num_running_reqs")),
        queued=_whole(gains.over_groups("sglang:num_queue_reqs")),
        http_active=active_requests(gains),
    )


def active_requests(series: Series) -> int | None:
    """Requests that the HTTP process holds open on generating endpoints: it counts on while a scheduler hangs."""
    rows = series.rows("sglang:http_requests_active")
    if not rows:
        return None
    return int(sum(value for labels, value in rows if labels.get("endpoint", "").startswith(_GENERATING)))


def acceptance(gains: Series) -> Acceptance:
    """Acceptance by the gauges of the last decode report, mean over groups that decode; steps of the window."""
    lengths = [gains.own("sglang:spec_accept_length", rank) for rank in gains.leaders()]
    ratios = [gains.own("sglang:spec_accept_rate", rank) for rank in gains.leaders()]
    return Acceptance(_mean(lengths), _mean(ratios), gains.total("sglang:spec_verify_calls_total"))


def is_standing_still(previous: MetricsPage, current: MetricsPage) -> bool:
    """Whether no scheduler series moved between two pages although requests are open at the HTTP door.

    Until 0.5.22 gauges freeze while a bootstrap queue is not empty; a hung scheduler looks alike.
    """
    if not active_requests(Series(current)):
        return False
    return _stats_points(previous) == _stats_points(current)


def _stats_points(page: MetricsPage) -> frozenset[object]:
    return frozenset(point for point in page.points if point[0].name in _STATS_NAMES)


def _tokens_per_second(gains: Series, seconds: float | None) -> float | None:
    """Decoded tokens a second over the window; the last decode report's gauge when there is no window."""
    if seconds is None:
        return gains.over_groups("sglang:gen_throughput")
    decoded = gains.over_groups("sglang:realtime_tokens_total", mode="decode")
    if decoded is None and gains.leaders() and "sglang:realtime_tokens_total" in gains:
        decoded = 0.0
    if decoded is None:
        decoded = gains.total("sglang:generation_tokens_total")
    return None if decoded is None else decoded / seconds


def _mean(values: list[float | None]) -> float | None:
    # 0 stands for "no verify step yet": a step always yields its bonus token.
    known = [value for value in values if value]
    return sum(known) / len(known) if known else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
