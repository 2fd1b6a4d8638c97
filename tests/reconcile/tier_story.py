"""A healthy node whose counters grow evenly: what rules on tiers, storage and speculation look back on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from ranktop.reconcile.thresholds import Thresholds
from ranktop.sample import MetricsPage, Sample, SeriesKey, ServerInfo
from support import samples

RANKS = 8
Points = list[tuple[SeriesKey, float]]
Change = Callable[[Sample], Sample]

_MODES = {"input": "input", "device": "device_hit", "host": "host_hit", "storage": "storage_hit"}
_RADIX = {
    "evicted": ("evicted_tokens_total", ()),
    "written": ("hicache_backup_tokens_total", (("pool", "kv"),)),
    "loaded": ("load_back_tokens_total", (("pool", "kv"),)),
    "dropped": ("hicache_dropped_tokens_total", (("pool", "kv"), ("reason", "host_pressure"))),
    "raced": ("hicache_dropped_tokens_total", (("pool", "kv"), ("reason", "write_through_unbacked_eviction"))),
}
_BYTES_PER_TOKEN = 61_464
_BYTES = {"written": "hicache_backup_bytes_total", "loaded": "load_back_bytes_total"}
_HTTP = {
    "verified": "spec_verify_calls_total",
    "requests": "num_requests_total",
    "prompt": "prompt_tokens_total",
}


def counters(totals: Mapping[str, float]) -> Points:
    """Series of 0.5.18 for logical totals: radix counters of all ranks in one series, `unified/<name>` as it stands."""
    points: Points = []
    for name, total in totals.items():
        if name in _MODES:
            for tp in range(RANKS):
                labels = (("mode", _MODES[name]), ("pp_rank", "0"), ("tp_rank", str(tp)))
                points.append((SeriesKey("sglang:prefill_effective_tokens_total", labels), total))
        elif name in _RADIX:
            series, labels = _RADIX[name]
            points.append((SeriesKey(f"sglang:{series}", labels), total * RANKS))
            if name in _BYTES:
                points.append((SeriesKey(f"sglang:{_BYTES[name]}"), total * RANKS * _BYTES_PER_TOKEN))
        elif name in _HTTP:
            points.append((SeriesKey(f"sglang:{_HTTP[name]}"), total))
        else:
            raise KeyError(name)
    return points


def at(seconds: float, totals: Mapping[str, float], *more: tuple[SeriesKey, float], used: int = 2_000_000) -> Sample:
    """The node after some seconds, with these totals on its page."""
    sample = samples.healthy(seconds)
    base = samples.page(sample.at_unix_seconds)
    points = tuple(
        (key, float(used)) if key.name == "sglang:hicache_host_used_tokens" else (key, value)
        for key, value in base.points
    )
    page = samples.with_points(base, (*points, *counters(totals), *more))
    return replace(sample, metrics={samples.SERVER: page})


def story(
    seconds: float,
    per_second: Mapping[str, float],
    *,
    step: float = 30.0,
    start: Mapping[str, float] | None = None,
    used: int = 2_000_000,
) -> list[Sample]:
    """Samples every `step` seconds. Totals begin at `start` (0) and grow by `per_second`."""
    begin = start or {}
    names = dict.fromkeys([*begin, *per_second])
    return [
        at(
            moment * step,
            {name: begin.get(name, 0.0) + per_second.get(name, 0.0) * moment * step for name in names},
            used=used,
        )
        for moment in range(round(seconds / step) + 1)
    ]


def judge(*told: Sample, thresholds: Thresholds | None = None, since_start: bool = False) -> Verdict:
    """The last verdict of a story."""
    reconciler = Reconciler(thresholds, since_start=since_start)
    return [reconciler.update(sample) for sample in told][-1]


def found(verdict: Verdict, code: str) -> list[Finding]:
    return [finding for finding in verdict.findings if finding.code == code]


def severities(verdict: Verdict, code: str) -> list[str]:
    return [finding.severity for finding in found(verdict, code)]


def with_page(sample: Sample, *more: tuple[SeriesKey, float]) -> Sample:
    """The sample with more series on its page."""
    page = sample.metrics[samples.SERVER]
    return replace(sample, metrics={samples.SERVER: samples.with_points(page, (*page.points, *more))})


def with_info(sample: Sample, version: str = "0.5.18", **args: object) -> Sample:
    """The sample with a server info of that version, with these arguments on top of the launch's."""
    info = ServerInfo(samples.SERVER, version=version, served_model_name="GLM-5.2-FP8", is_ready=True, args=args)
    return replace(sample, infos={samples.SERVER: info})


def page_of(sample: Sample) -> MetricsPage:
    return sample.metrics[samples.SERVER]
