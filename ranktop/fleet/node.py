"""One node's series as a verdict, so that the same views draw it. Pure.

What the exporter does not export cannot come back: the plan as a whole, reasons, evidence, sources of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec.structs import replace

from ranktop.clock import iso_utc
from ranktop.exporter import metrics
from ranktop.finding import Finding, worst
from ranktop.fleet.lines import Series, by_name, lines_of, ranks_of
from ranktop.fleet.rows import SEVERITY_OF, NodeRow, shares
from ranktop.fleet.source import Row
from ranktop.reconcile.grouping import group, rank_span
from ranktop.reconcile.verdict import (
    Line,
    NodeVerdict,
    RankVerdict,
    ServerVerdict,
    Service,
    ServiceLatency,
    TierShares,
    TransferRates,
    Verdict,
)
from ranktop.sample import Sample, SourceState

_LAST_UNIX_SECONDS = 253402300800.0
"""The end of what a date can hold."""
_MESSAGE = "open on this node, told by its exporter"
_ADVICE = "open this node with `ranktop` there: evidence, reasons and advice stay on the node"


def node_verdict(rows: Iterable[Row], instance: str, at_unix_seconds: float) -> Verdict | None:
    """The verdict behind an exporter's series; None when it has none."""
    series = by_name(rows)
    if metrics.SEVERITY.name not in series:
        return None
    sampled = _single(series, metrics.SAMPLED.name) or at_unix_seconds
    ranks = ranks_of(series)
    findings = _findings(series, {(rank.server, rank.rank): place for place, rank in enumerate(ranks)})
    servers = tuple(_server(series, labels, ranks) for labels, _ in _sorted(series, metrics.SERVER.name))
    loud = [finding for finding in findings if finding.severity != "info"]
    since = _single(series, metrics.WITHIN_PLAN.name)
    return Verdict(
        sample=Sample(sampled, sampled, instance, sources=_sources(series, sampled)),
        servers=servers,
        node=NodeVerdict(tuple(lines_of(series, "node").get((), ()))),
        ranks=ranks,
        tiers=_mean([server.tiers for server in servers]),
        transfers=_sum([server.transfers for server in servers]),
        findings=findings,
        headline=f"{loud[0].code} on {_where(loud[0])}" if loud else "nothing above info is open",
        headline_severity=worst(loud),
        within_plan_since=since,
    )


def _findings(series: Series, order: dict[tuple[str | None, str | None], int]) -> tuple[Finding, ...]:
    since = {_finding_key(labels): value for labels, value in series.get(metrics.SINCE.name, ())}
    found: list[Finding] = []
    for labels, _ in series.get(metrics.FINDING.name, ()):
        severity = SEVERITY_OF.get(labels.get("severity", ""))
        if severity is None:
            continue
        server, rank = labels.get("server"), labels.get("rank")
        opened = since.get(_finding_key(labels))
        found.append(
            Finding(
                labels.get("code", ""),
                severity,
                _MESSAGE,
                scope="rank" if rank else "server" if server else "node",
                server=server,
                rank=rank,
                ranks=(rank,) if rank else (),
                since=iso_utc(opened) if opened is not None and 0 <= opened < _LAST_UNIX_SECONDS else None,
                sources={"finding": "reported"},
                advice=_ADVICE,
            )
        )
    return tuple(replace(one, message=_MESSAGE) for one in group(found, order))


def _finding_key(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(label, "") for label in metrics.FINDING.labels)


def _where(finding: Finding) -> str:
    return rank_span(finding.ranks) or finding.server or "the node"


def _server(series: Series, labels: Mapping[str, str], ranks: tuple[RankVerdict, ...]) -> ServerVerdict:
    server = labels.get("server", "")

    def own(metric: metrics.Metric, label: str) -> dict[str, float]:
        rows = series.get(metric.name, ())
        return {row.get(label, ""): value for row, value in rows if row.get("server") == server}

    def latency(stage: str) -> ServiceLatency:
        rows = series.get(metrics.LATENCY.name, ())
        by = {
            row.get("percentile"): value
            for row, value in rows
            if row.get("server") == server and row.get("stage") == stage
        }
        return ServiceLatency(by.get("p50"), by.get("p95"), by.get("p99"))

    moved, requests = own(metrics.TRANSFER, "direction"), own(metrics.REQUESTS, "state")
    ready = own(metrics.READY, "server").get(server)
    return ServerVerdict(
        id=server,
        pid=None,
        url=None,
        version=labels.get("version"),
        model=labels.get("model"),
        role=labels.get("role"),
        ranks=sum(1 for rank in ranks if rank.server == server),
        plan_error="the plan is on the node; its numbers are in the lines",
        started_unix_seconds=own(metrics.STARTED, "server").get(server),
        is_ready=None if ready is None else bool(ready),
        tiers=shares(own(metrics.TIER, "tier")),
        transfers=TransferRates(
            moved.get("backup"), moved.get("load_back"), moved.get("prefetch"), "reported" if moved else None
        ),
        service=Service(
            ttft_seconds=latency("ttft"),
            inter_token_seconds=latency("inter_token"),
            e2e_seconds=latency("e2e"),
            tokens_per_second=own(metrics.THROUGHPUT, "server").get(server),
            running=_whole(requests.get("running")),
            queued=_whole(requests.get("queued")),
            http_active=_whole(requests.get("http_active")),
        ),
    )


def _sources(series: Series, sampled: float) -> tuple[SourceState, ...]:
    def by_source(metric: metrics.Metric) -> dict[tuple[str, str | None], float]:
        return {
            (labels.get("source", ""), labels.get("server")): value for labels, value in series.get(metric.name, ())
        }

    up, age, took = by_source(metrics.SOURCE_UP), by_source(metrics.SOURCE_AGE), by_source(metrics.SOURCE_TOOK)
    states: dict[float, Literal["ok", "error"]] = {1.0: "ok", 0.0: "error"}
    return tuple(
        SourceState(
            name,
            states.get(up.get((name, server), -1.0), "no_data"),
            server=server,
            detail="" if up.get((name, server)) else "the exporter says no more than that",
            at_unix_seconds=sampled - age[name, server] if (name, server) in age else None,
            took_seconds=took.get((name, server)),
        )
        for name, server in sorted({*up, *age, *took}, key=lambda key: (key[1] or "", key[0]))
    )


def _mean(known: list[TierShares]) -> TierShares:
    """One server's own shares; of several no mean, because their tokens are not told."""
    return known[0] if len(known) == 1 else TierShares()


def _sum(known: list[TransferRates]) -> TransferRates:
    def total(values: list[float | None]) -> float | None:
        told = [value for value in values if value is not None]
        return sum(told) if told else None

    return TransferRates(
        total([one.backup_bytes_per_second for one in known]),
        total([one.load_back_bytes_per_second for one in known]),
        total([one.prefetch_bytes_per_second for one in known]),
        "reported" if known else None,
    )


def _sorted(series: Series, name: str) -> list[tuple[dict[str, str], float]]:
    return sorted(series.get(name, ()), key=lambda row: row[0].get("server", ""))


def _single(series: Series, name: str) -> float | None:
    rows = series.get(name)
    return rows[0][1] if rows else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def bare_verdict(row: NodeRow, at_unix_seconds: float) -> Verdict:
    """A node without an exporter: what SGLang's own series say, and that there is no more.

    Of one whose exporter is gone nothing is told: what was seen of it before is not of this moment.
    """
    is_gone = row.origin != "sglang"
    told = () if is_gone else (("requests.running", row.running_requests), ("requests.queued", row.queued_requests))
    return Verdict(
        sample=Sample(at_unix_seconds, at_unix_seconds, row.instance),
        servers=(),
        node=NodeVerdict(
            tuple(
                Line(name, unit="count", seen=seen, status="ok", source="reported")
                for name, seen in told
                if seen is not None
            )
        ),
        ranks=(),
        tiers=TierShares(detail="not scraped") if is_gone else row.tiers,
        transfers=TransferRates(),
        findings=(),
        headline="not scraped at this time: is the node up, and `ranktop exporter` on it?"
        if is_gone
        else "no exporter of ranktop on this node: tiers and service from SGLang's own series, no plan, no findings",
        headline_severity="warn",
    )
