"""PLAN findings that a launch alone decides. Pure: (plan, arguments) -> findings."""

from __future__ import annotations

from collections.abc import Iterable

from ranktop.finding import Finding, Severity
from ranktop.plan.arguments import Arguments
from ranktop.plan.plan import GB, Plan

_ADVICE = {
    "PLAN-REJECTED": "Change the launch: SGLang refuses to start with it.",
    "PLAN-SILENT-NOOP": "Remove the flag, or change what keeps it from working.",
    "PLAN-FAILS-LATER": "Change the launch: start-up proves nothing here.",
    "PLAN-UNTESTED": "Treat it as unsupported until you have proved it on your image.",
    "PLAN-REWRITTEN": "Write down the resolved value, not the flag.",
}
_SEVERITIES: dict[str, Severity] = {
    "PLAN-REJECTED": "breach",
    "PLAN-SILENT-NOOP": "breach",
    "PLAN-FAILS-LATER": "breach",
    "PLAN-UNTESTED": "warn",
    "PLAN-REWRITTEN": "warn",
}


def launch_findings(plan: Plan, asked: Arguments, args: Arguments, is_resolved: bool) -> tuple[Finding, ...]:
    """All of them, in the order of `findings.md`."""
    return (
        *_smaller_than_l1(plan),
        # A server's report carries the default ratio beside the size.
        *(() if is_resolved else _size_beats_ratio(asked)),
        *_size_without_indexer(plan),
        *_eligibility(plan),
        *_inexact(plan),
        *_metrics_off(args),
    )


def _eligibility(plan: Plan) -> Iterable[Finding]:
    for row in plan.eligibility:
        if row.finding is not None:
            yield Finding(
                row.finding,
                _SEVERITIES[row.finding],
                f"{row.rule}: {row.message}",
                scope="server",
                sources={"rule": f"SGLang {plan.sglang.profile}"},
                advice=_ADVICE[row.finding],
            )


def _smaller_than_l1(plan: Plan) -> Iterable[Finding]:
    for rank in plan.ranks[:1]:
        host, device_tokens = rank.host, rank.device.pool_tokens
        if host is None or host.tokens is None or device_tokens is None or host.tokens > device_tokens:
            return
        storage = " With storage, prefetch has next to no room." if plan.launch.storage_backend else ""
        yield Finding(
            "PLAN-L2-SMALLER-THAN-L1",
            "warn",
            f"L2 holds {host.tokens:,} tokens, L1 {device_tokens:,}: every page in L2 can also be in L1.{storage}",
            scope="server",
            evidence={"host_tokens": host.tokens, "device_tokens": device_tokens},
            sources={"host_tokens": "computed", "device_tokens": "given"},
            advice="Raise --hicache-size or --hicache-ratio above the L1 pool, or leave HiCache off.",
        )


def _size_beats_ratio(asked: Arguments) -> Iterable[Finding]:
    if asked.enable_hierarchical_cache and asked.hicache_size and asked.hicache_ratio is not None:
        yield Finding(
            "PLAN-SIZE-BEATS-RATIO",
            "info",
            f"--hicache-size {asked.hicache_size:g} decides; --hicache-ratio {asked.hicache_ratio:g} is ignored",
            scope="server",
            evidence={"hicache_size_gb": asked.hicache_size, "hicache_ratio": asked.hicache_ratio},
            advice="Keep one of the two.",
        )


def _size_without_indexer(plan: Plan) -> Iterable[Finding]:
    for rank in plan.ranks[:1]:
        host = rank.host
        if host is None or not host.index_layers:
            return
        percent = 100 * host.index_bytes_per_token / host.bytes_per_token
        allocated = host.indexer_allocated_bytes
        amount = f", {allocated / GB:.2f} GB a rank" if allocated is not None else ""
        yield Finding(
            "PLAN-SIZE-WITHOUT-INDEXER",
            "info",
            f"the DSA indexer comes on top of the primary pool: +{percent:.2f} %{amount}",
            scope="server",
            evidence={"indexer_percent": round(percent, 6), "indexer_allocated_bytes": allocated},
            sources={"indexer_allocated_bytes": "computed"},
            advice="Budget primary + indexer for every rank of the node.",
        )


def _inexact(plan: Plan) -> Iterable[Finding]:
    if not plan.sglang.exact:
        yield Finding(
            "PLAN-VERSION-INEXACT",
            "info",
            f"SGLang {plan.sglang.version} has no profile; computed as {plan.sglang.profile}",
            scope="server",
            advice="Check the plan against the server's own log lines (tokens and GB of the host pools).",
        )


_OBSERVING = (
    ("enable_metrics", "--enable-metrics", "tiers, traffic, latency"),
    ("enable_metrics_for_all_schedulers", "--enable-metrics-for-all-schedulers", "gauges of all ranks"),
    ("enable_cache_report", "--enable-cache-report", "cached tokens of a response"),
    ("export_metrics_to_file", "--export-metrics-to-file", "records of single requests"),
)


def _metrics_off(args: Arguments) -> Iterable[Finding]:
    missing = [(flag, loss) for field, flag, loss in _OBSERVING if not getattr(args, field)]
    if missing:
        yield Finding(
            "PLAN-METRICS-OFF",
            "info",
            "will not be seen without " + ", ".join(f"{flag} ({loss})" for flag, loss in missing),
            scope="server",
            evidence={"missing": [flag for flag, _ in missing]},
            advice="Add the flags before the launch: a restart later loses L1 and L2.",
        )
