"""How a server serves: latencies of the window, throughput, queues, acceptance."""

from __future__ import annotations

from ranktop.reconcile.histograms import latency, mean
from ranktop.reconcile.series import Series
from ranktop.reconcile.series_by_version import has_family
from ranktop.reconcile.verdict import Acceptance, Load, Service

_RETRACTED = "sglang:num_retracted_requests_total"
_ABORTED = "sglang:num_aborted_requests_total"
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


def load(gains: Series, seconds: float | None, version: str | None) -> Load:
    """Requests, queue time and retractions of a window (`Series.since`); totals when there is no page before."""
    requests, prompt = gains.total("sglang:num_requests_total"), gains.total("sglang:prompt_tokens_total")
    return Load(
        None if requests is None or seconds is None else requests / seconds,
        None if prompt is None or seconds is None else prompt / seconds,
        # Every rank of a group observes the same requests, so the mean over all is the mean of one.
        mean(gains, "sglang:queue_time_seconds"),
        _counted(gains.most_over_groups(_RETRACTED), _RETRACTED, version),
        _counted(gains.total(_ABORTED), _ABORTED, version),
        seconds,
    )


def service(gains: Series, seconds: float | None) -> Service:
    """Latencies of a window (`Series.since`; of all time when there is no page before), queues as they stand."""
    return Service(
        ttft_seconds=latency(gains, "sglang:time_to_first_token_seconds"),
        inter_token_seconds=latency(gains, "sglang:inter_token_latency_seconds"),
        e2e_seconds=latency(gains, "sglang:e2e_request_latency_seconds"),
        tokens_per_second=_tokens_per_second(gains, seconds),
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


def _counted(value: float | None, name: str, version: str | None) -> int | None:
    """The counter appears with its first event: until then it is 0, where the version has it."""
    if value is None:
        return 0 if has_family(name, version) else None
    return int(value)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
