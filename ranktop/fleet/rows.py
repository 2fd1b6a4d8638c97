"""One row a node, from the answers to the overview's queries. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ranktop.finding import SEVERITIES, Severity
from ranktop.fleet.queries import PART
from ranktop.fleet.source import Row
from ranktop.reconcile.verdict import TierShares

Answers = Mapping[str, Sequence[Row]]
SEVERITY_OF: dict[str, Severity] = {severity: severity for severity in SEVERITIES}
"""A severity that came as text."""
Origin = Literal["ranktop", "sglang", "gone"]


class ServerFacts(Struct, frozen=True):
    """What a server of a node was launched with; None where it is not told."""

    server: str
    version: str | None = None
    model: str | None = None
    role: str | None = None
    tp_size: str | None = None
    page_size: str | None = None
    kv_cache_dtype: str | None = None
    storage_backend: str | None = None


class OpenFinding(Struct, frozen=True):
    """A code that is open on a node, on so many ranks."""

    code: str
    severity: Severity
    ranks: int = 1


class NodeRow(Struct, frozen=True):
    """One node. `origin`: its exporter answers, only SGLang's own series are there, or it was there and is gone."""

    instance: str
    origin: Origin
    group: str | None = None
    severity: Severity | None = None
    findings: tuple[OpenFinding, ...] = ()
    """Without `info`, worst first."""
    servers: tuple[ServerFacts, ...] = ()
    host_total_bytes: float | None = None
    host_available_bytes: float | None = None
    host_pools_bytes: float | None = None
    pressure_ratio: float | None = None
    hbm_free_bytes: float | None = None
    """Of the rank that has least."""
    l2_used_ratio: float | None = None
    tiers: TierShares = TierShares()
    ttft_p95_seconds: float | None = None
    running_requests: float | None = None
    queued_requests: float | None = None

    @property
    def host(self) -> str:
        """The instance without its port."""
        return host_of(self.instance)

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of its servers, each once."""
        return tuple(dict.fromkeys(server.role for server in self.servers if server.role))


def by_part(rows: Iterable[Row]) -> Answers:
    """The parts of a joined answer, by name."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.labels.get(PART, ""), []).append(row)
    return found


def host_of(instance: str) -> str:
    """`node-a` of `node-a:9472`."""
    name, colon, port = instance.rpartition(":")
    return name if colon and port.isdecimal() else instance


def exporter_rows(answers: Answers, group: str | None = None) -> tuple[NodeRow, ...]:
    """Nodes with an exporter, and those whose exporter was there within the hour; by name."""
    present = {row.labels.get("instance", ""): row for row in answers.get("severity", ())}
    gone = {row.labels.get("instance", ""): row for row in answers.get("gone", ())}
    findings = _grouped(answers.get("findings", ()))
    servers = _grouped(answers.get("servers", ()))
    host, l2 = _pivot(answers.get("host", ()), "line"), _pivot(answers.get("l2", ()), "line")
    tiers, requests = _pivot(answers.get("tiers", ()), "tier"), _pivot(answers.get("requests", ()), "state")
    pressure, hbm_free, ttft = (_by_instance(answers.get(name, ())) for name in ("pressure", "hbm_free", "ttft"))
    rows = [
        NodeRow(
            instance=instance,
            origin="ranktop",
            group=row.labels.get(group) if group else None,
            severity=severity_of(row.value),
            findings=_findings(findings.get(instance, ())),
            servers=tuple(_server(server.labels) for server in servers.get(instance, ())),
            host_total_bytes=host.get(instance, {}).get("host.total"),
            host_available_bytes=host.get(instance, {}).get("host.available"),
            host_pools_bytes=host.get(instance, {}).get("host.pools"),
            pressure_ratio=pressure.get(instance),
            hbm_free_bytes=hbm_free.get(instance),
            l2_used_ratio=_ratio(l2.get(instance, {}).get("l2.used"), l2.get(instance, {}).get("l2.total")),
            tiers=shares(tiers.get(instance, {})),
            ttft_p95_seconds=ttft.get(instance),
            running_requests=requests.get(instance, {}).get("running"),
            queued_requests=requests.get(instance, {}).get("queued"),
        )
        for instance, row in present.items()
    ]
    rows += [
        NodeRow(instance=instance, origin="gone", group=row.labels.get(group) if group else None)
        for instance, row in gone.items()
        if instance not in present
    ]
    return tuple(sorted(rows, key=lambda row: row.instance))


def sglang_rows(found: Sequence[Row], answers: Answers, group: str | None = None) -> tuple[NodeRow, ...]:
    """Targets that only have SGLang's own series: tiers and service, no plan, no findings."""
    running, queued, prompt, ttft, used, total = (
        _by_instance(answers.get(name, ())) for name in ("running", "queued", "prompt", "ttft", "l2_used", "l2_total")
    )
    cached = _pivot(answers.get("cached", ()), "cache_source")
    return tuple(
        NodeRow(
            instance=(instance := row.labels.get("instance", "")),
            origin="sglang",
            group=row.labels.get(group) if group else None,
            tiers=_finished(cached.get(instance, {}), prompt.get(instance)),
            l2_used_ratio=_ratio(used.get(instance), total.get(instance)),
            ttft_p95_seconds=ttft.get(instance),
            running_requests=running.get(instance),
            queued_requests=queued.get(instance),
        )
        for row in sorted(found, key=lambda row: row.labels.get("instance", ""))
    )


def severity_of(value: float) -> Severity | None:
    """The severity behind `ranktop_severity`."""
    place = int(value) - 1
    return SEVERITIES[place] if 0 <= place < len(SEVERITIES) else None


def shares(by_tier: Mapping[str, float]) -> TierShares:
    """Tier shares from `ranktop_tier_share_ratio`."""
    return TierShares(
        device_hit=by_tier.get("device"),
        host_hit=by_tier.get("host"),
        storage_hit=by_tier.get("storage"),
        miss=by_tier.get("miss"),
        source="reported" if by_tier else None,
    )


def _finished(cached: Mapping[str, float], prompt: float | None) -> TierShares:
    """From `cached_tokens_total` by source: `storage` from SGLang 0.5.20, `storage_<backend>` before."""
    if not prompt or "total" in cached:
        return TierShares()
    device, host = cached.get("device", 0.0), cached.get("host", 0.0)
    storage = sum(tokens for source, tokens in cached.items() if source.startswith("storage"))
    return TierShares(
        device_hit=device / prompt,
        host_hit=host / prompt,
        storage_hit=storage / prompt,
        miss=max(0.0, prompt - device - host - storage) / prompt,
        source="reported",
    )


def _findings(rows: Iterable[Row]) -> tuple[OpenFinding, ...]:
    known = (
        OpenFinding(row.labels.get("code", ""), severity, int(row.value))
        for row in rows
        if (severity := SEVERITY_OF.get(row.labels.get("severity", ""))) is not None
    )
    return tuple(sorted(known, key=lambda one: (-SEVERITIES.index(one.severity), one.code)))


def _server(labels: Mapping[str, str]) -> ServerFacts:
    return ServerFacts(labels.get("server", ""), *(labels.get(name) for name in ServerFacts.__struct_fields__[1:]))


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.labels.get("instance", ""), []).append(row)
    return found


def _pivot(rows: Iterable[Row], label: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row.labels.get("instance", ""), {})[row.labels.get(label, "")] = row.value
    return found


def _by_instance(rows: Iterable[Row]) -> dict[str, float]:
    return {row.labels.get("instance", ""): row.value for row in rows}


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
