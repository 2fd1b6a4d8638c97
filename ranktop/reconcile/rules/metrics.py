"""What the metrics page hides or does not give: METRICS-OFF, -AUTH, -REDIRECT, -EMPTY, -TIMEOUT, -RANK0-ONLY, -DEDUP"""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.series_by_version import is_before
from ranktop.sample import SourceState

_LOST = "a restart loses what L1 and L2 hold, so not in an incident"

_FAILURES = {
    "http_404": (
        "METRICS-OFF",
        f"launch with --enable-metrics at the next planned restart; {_LOST}. Until then /v1/loads still answers",
    ),
    "refused": ("METRICS-OFF", "check --host and --port of the launch, and that the main process still listens"),
    "http_401": ("METRICS-AUTH", "SGLang leaves /metrics open, so a proxy asks here: point --url at SGLang itself"),
    "http_403": ("METRICS-AUTH", "SGLang leaves /metrics open, so a proxy asks here: point --url at SGLang itself"),
    "http_3xx": ("METRICS-REDIRECT", "ranktop follows no redirect: give the address it names with --url"),
    "empty": ("METRICS-EMPTY", "the page has no series of SGLang: is this port SGLang's, and has a rank started?"),
    "truncated": ("METRICS-EMPTY", "the page ended early: read it by hand once (curl -s URL/metrics | tail)"),
    "timeout": (
        "METRICS-TIMEOUT",
        "the HTTP process is busy or stuck: look at its CPU use and at GPU use of the ranks",
    ),
}


_HALF = ("empty", "truncated")
"""What a server also answers, once, while it ends."""


def metrics_missing(context: Context) -> Iterator[Finding]:
    """The metrics source failed, and the server has had the time to answer."""
    for state in context.sample.sources:
        if state.name != "metrics" or state.state not in ("error", "no_data") or state.code not in _FAILURES:
            continue
        if state.code == "refused" and not _should_answer(context, state):
            continue
        if state.code in _HALF and _is_stopping(context, state):
            continue
        code, advice = _FAILURES[state.code]
        yield Finding(
            code,
            "warn",
            state.detail,
            scope="server",
            server=state.server,
            evidence={"answer": state.code},
            sources={"answer": "measured"},
            advice=advice,
        )


def rank0_only(context: Context) -> Iterator[Finding]:
    """Only the stats ranks report gauges: what is shown for the others is their group's value."""
    for server in context.servers:
        ranks = context.ranks_of(server.id)
        if server.id not in context.sample.metrics or len(ranks) < 2:
            continue
        lines = [rank.line("l1.used") for rank in ranks]
        visible = sum(1 for line in lines if line.seen is not None and not line.group)
        if 0 < visible < len(ranks):
            yield Finding(
                "METRICS-RANK0-ONLY",
                "info",
                f"{visible} of {len(ranks)} ranks report gauges; the others show their group's value (marked ')",
                scope="server",
                server=server.id,
                evidence={"visible_ranks": visible, "ranks": len(ranks)},
                sources={"visible_ranks": "reported", "ranks": "measured"},
                advice="launch with --enable-metrics-for-all-schedulers at the next planned restart: every rank then "
                "reports its own gauges",
            )


def metrics_dedup(context: Context) -> Iterator[Finding]:
    """Series that this version merges or repeats over ranks, and how they were read."""
    for server in context.servers:
        kept = context.ledgers.get(server.id, ())
        if server.ranks < 2 or not kept or not (kept[-1].backup_tokens or kept[-1].evicted_tokens):
            continue
        plan = server.plan
        merged = is_before(server.version, "0.5.21")
        if merged and plan is not None and plan.launch.hicache:
            says = f"L2 counters of {server.ranks} ranks are one series: tokens were divided by the ranks of a group"
        elif (
            merged is False
            and plan is not None
            and plan.launch.dp_size > 1
            and not _has_dp_attention(context, server.id)
        ):
            says = f"L2 and L3 counters of {plan.launch.dp_size} replicas carry the same labels and were read as a sum"
        else:
            continue
        yield Finding(
            "METRICS-DEDUP",
            "info",
            says,
            scope="server",
            server=server.id,
            **evidence("reported", ranks=server.ranks, version=server.version),
            advice="a dashboard that sums these series over ranks shows a multiple of what moved; per-rank rates need "
            "SGLang 0.5.21 or later",
        )


def _has_dp_attention(context: Context, server: str) -> bool:
    info = context.sample.infos.get(server)
    return bool(info is not None and info.args.get("enable_dp_attention"))


def _is_stopping(context: Context, state: SourceState) -> bool:
    """It was told to end after its last page; or that page is so young that the log may not have said so yet."""
    last = state.at_unix_seconds
    if last is None:
        return False
    if context.sample.at_unix_seconds - last < 2 * state.period_seconds:
        return True
    return any(
        event.server == state.server and event.fields.get("signal") == "SIGTERM"
        for event in context.incidents.of("signal", since_unix_seconds=last - state.period_seconds)
    )


def _should_answer(context: Context, state: SourceState) -> bool:
    """A loading server has no port yet, one that ended has none. One that answered, or is known by its URL, should."""
    if _is_stopping(context, state):
        return False
    if state.server in context.seen_up:
        return True
    if any(gone.process.server == state.server for gone in context.gone):
        return False
    return any(server.id == state.server and server.pid is None for server in context.servers)
