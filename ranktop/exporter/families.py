"""One verdict as values of the metrics. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import ranktop
from ranktop.exporter import metrics
from ranktop.exporter.metrics import LINES, UNITS, Metric, Scope, Value, line_metric
from ranktop.finding import SEVERITIES, Finding, worst
from ranktop.reconcile.gone import gone_ranks
from ranktop.reconcile.verdict import Line, ServerVerdict, Verdict

_STATUS = {"ok": 0.0, "over": 1.0, "under": -1.0}


class Point(NamedTuple):
    """A value of a metric, with its label values in the metric's order."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


def points(verdict: Verdict) -> Iterator[Point]:
    """Everything that a verdict says in numbers. What was not seen is left out."""
    yield Point(metrics.BUILD, (ranktop.__version__,), 1.0)
    yield Point(metrics.SAMPLED, (), verdict.sample.at_unix_seconds)
    severity = worst(verdict.findings)
    yield Point(metrics.SEVERITY, (), 0.0 if severity is None else 1.0 + SEVERITIES.index(severity))
    if verdict.within_plan_since is not None:
        yield Point(metrics.WITHIN_PLAN, (), verdict.within_plan_since)
    yield from _findings(verdict.findings)
    for server in verdict.servers:
        yield from _server(server)
    gone = gone_ranks(verdict)
    for rank in verdict.ranks:
        place = (rank.server, rank.rank)
        yield Point(metrics.RANK, (*place, _text(rank.pid), _text(rank.gpu), _text(rank.numa)), 1.0)
        yield from _lines("rank", place, rank.lines, is_gone=place in gone)
    yield from _lines("node", (), verdict.node.lines)
    yield from _sources(verdict)


def _findings(findings: Sequence[Finding]) -> Iterator[Point]:
    for finding in findings:
        for rank in finding.ranks or ("",):
            labels = (finding.code, finding.severity, finding.server or "", rank)
            yield Point(metrics.FINDING, labels, 1.0)
            if finding.since is not None:
                yield Point(metrics.SINCE, labels, datetime.fromisoformat(finding.since).timestamp())


def _server(server: ServerVerdict) -> Iterator[Point]:
    launch = server.plan.launch if server.plan is not None else None
    told = [server.version, server.model, server.role]
    if launch is not None:
        told += [str(launch.tp_size), str(launch.dp_size), str(launch.page_size), launch.kv_cache_dtype]
        told += [launch.write_policy, launch.mem_layout] if launch.hicache else ["", ""]
        told.append(launch.storage_backend or "")
    words = [word or "" for word in told]
    words += [""] * (len(metrics.SERVER.labels) - 1 - len(words))
    yield Point(metrics.SERVER, (server.id, *words), 1.0)
    if server.is_ready is not None:
        yield Point(metrics.READY, (server.id,), float(server.is_ready))
    yield from _known(metrics.STARTED, [((server.id,), server.started_unix_seconds)])
    tiers, moved, service = server.tiers, server.transfers, server.service
    shares = {
        "device": tiers.device_hit,
        "host": tiers.host_hit,
        "storage": tiers.storage_hit,
        "miss": tiers.miss,
    }
    yield from _known(metrics.TIER, (((server.id, tier), share) for tier, share in shares.items()))
    rates = {
        "backup": moved.backup_bytes_per_second,
        "load_back": moved.load_back_bytes_per_second,
        "prefetch": moved.prefetch_bytes_per_second,
    }
    yield from _known(metrics.TRANSFER, (((server.id, direction), rate) for direction, rate in rates.items()))
    stages = {
        "ttft": service.ttft_seconds,
        "inter_token": service.inter_token_seconds,
        "e2e": service.e2e_seconds,
    }
    for stage, latency in stages.items():
        percentiles = (("p50", latency.p50), ("p95", latency.p95), ("p99", latency.p99))
        yield from _known(metrics.LATENCY, (((server.id, stage, name), value) for name, value in percentiles))
    yield from _known(metrics.THROUGHPUT, [((server.id,), service.tokens_per_second)])
    states = {"running": service.running, "queued": service.queued, "http_active": service.http_active}
    yield from _known(metrics.REQUESTS, (((server.id, state), count) for state, count in states.items()))


def _lines(scope: Scope, place: tuple[str, ...], lines: Iterable[Line], *, is_gone: bool = False) -> Iterator[Point]:
    """Of a rank that is gone, what it said before is old."""
    for line in lines:
        is_old = line.stale or (is_gone and line.source in ("logged", "reported"))
        labels = (*place, line.line)
        factor = UNITS[line.unit][1]
        amounts: tuple[tuple[Value, float | None], ...] = (
            ("seen", line.seen),
            ("planned", line.planned),
            ("difference", line.difference),
        )
        for value, amount in amounts:
            # A value that has aged is no news: its series ends as a missing one does.
            if amount is not None and not (is_old and value != "planned"):
                yield Point(LINES[line_metric(scope, value, line.unit)], labels, float(amount * factor))
        if line.planned is not None and not is_old and line.status in _STATUS:
            yield Point(LINES[f"{metrics.PREFIX}{scope}_status"], labels, _STATUS[line.status])


def _sources(verdict: Verdict) -> Iterator[Point]:
    now = verdict.sample.at_unix_seconds
    for state in verdict.sample.sources:
        labels = (state.name, state.server or "")
        if state.state != "no_data":
            yield Point(metrics.SOURCE_UP, labels, float(state.state == "ok"))
        age = None if state.at_unix_seconds is None else max(0.0, now - state.at_unix_seconds)
        yield from _known(metrics.SOURCE_AGE, [(labels, age)])
        yield from _known(metrics.SOURCE_TOOK, [(labels, state.took_seconds)])


def _known(metric: Metric, values: Iterable[tuple[tuple[str, ...], float | None]]) -> Iterator[Point]:
    return (Point(metric, labels, float(value)) for labels, value in values if value is not None)


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
