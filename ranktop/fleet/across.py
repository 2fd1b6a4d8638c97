"""What only a look over several nodes shows. Pure: rows of one moment to findings; `server` names the instance.

Nodes are compared within their group and model: two deployments may well differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from ranktop.finding import Finding, Severity
from ranktop.fleet.rows import NodeRow, ServerFacts

SLOW_RATIO = 2.0
"""NODE-SLOW: times the median of its equals."""
SLOW_SECONDS = 0.5
"""NODE-SLOW: by how much at least, so that no idle fleet's jitter is news."""
SLOW_PEERS = 4
"""NODE-SLOW: below so many equals there is no usual."""
_SHARED = ("version", "page_size", "kv_cache_dtype")
_STORED = ("model", "page_size", "kv_cache_dtype", "tp_size")
_LOCAL_BACKENDS = ("file",)


class _Placed(NamedTuple):
    node: NodeRow
    server: ServerFacts


def across(rows: Iterable[NodeRow]) -> tuple[Finding, ...]:
    """LAUNCH-DRIFT, L3-SHARED-MISMATCH, PD findings with both ends, NODE-SLOW."""
    placed = [_Placed(row, server) for row in rows for server in row.servers]
    found: list[Finding] = []
    for members in _by(placed, lambda one: (one.node.group, one.server.model)):
        found += _drift(members)
        found += _slow(members)
    for members in _by(placed, lambda one: one.node.group):
        found += _storage(members)
        found += _handoff(members)
    return tuple(found)


def _drift(members: Sequence[_Placed]) -> Iterator[Finding]:
    """Servers of one model that run something else than most."""
    for name in _SHARED:
        values = _values(members, name)
        if len(values) < 2:
            continue
        usual, _ = Counter({value: len(having) for value, having in values.items()}).most_common(1)[0]
        roles = {one.server.role for having in values.values() for one in having}
        # A hand-off needs the same pages on both sides; a version may differ while a rollout is under way.
        severity: Severity = "breach" if name != "version" and {"prefill", "decode"} <= roles else "warn"
        for value, having in values.items():
            if value == usual:
                continue
            yield Finding(
                "LAUNCH-DRIFT",
                severity,
                f"{name} {value} on {_names(having)}, {usual} on {_names(values[usual])}",
                scope="node",
                server=having[0].node.instance,
                evidence={"name": name, "values": {each: _instances(own) for each, own in values.items()}},
                sources={"values": "reported"},
                advice="start these servers from one launch, or give them groups of their own (--group)",
            )


def _storage(members: Sequence[_Placed]) -> Iterator[Finding]:
    """Servers with the same storage backend that would not understand each other's pages."""
    for using in _by(members, lambda one: one.server.storage_backend):
        backend = using[0].server.storage_backend
        if not backend or backend in _LOCAL_BACKENDS:
            continue
        differing = {name: values for name in _STORED if len(values := _values(using, name)) > 1}
        if differing:
            told = "; ".join(
                f"{name} {', '.join(f'{value} on {_names(own)}' for value, own in values.items())}"
                for name, values in differing.items()
            )
            yield Finding(
                "L3-SHARED-MISMATCH",
                "warn",
                f"{backend} storage with different {told}; whether it is one storage cannot be seen from here",
                evidence={
                    name: {value: _instances(own) for value, own in values.items()}
                    for name, values in differing.items()
                },
                sources=dict.fromkeys(differing, "reported"),
                advice="give each kind of server a storage or a namespace of its own",
            )


def _handoff(members: Sequence[_Placed]) -> Iterator[Finding]:
    """A PD finding on one end, told with the other end beside it."""
    ends = {role: [one for one in members if one.server.role == role] for role in ("prefill", "decode")}
    if not all(ends.values()):
        return
    told = {
        one.node.instance: [finding for finding in one.node.findings if finding.code.startswith("PD-")]
        for having in ends.values()
        for one in having
    }
    codes = [finding for findings in told.values() for finding in findings]
    if not codes:
        return
    sides = [
        f"{role} {_names(having)}: "
        + (", ".join(sorted({finding.code for one in having for finding in told[one.node.instance]})) or "nothing")
        for role, having in ends.items()
    ]
    first = next(
        finding for severity in ("critical", "breach", "warn") for finding in codes if finding.severity == severity
    )
    yield Finding(
        first.code,
        first.severity,
        "the hand-off, both ends: " + "; ".join(sides),
        server=next(instance for instance, findings in told.items() if first in findings),
        evidence={instance: [finding.code for finding in findings] for instance, findings in told.items()},
        sources=dict.fromkeys(told, "reported"),
        advice="open the end that tells more first; a stall of one end shows on the other as waiting",
    )


def _slow(members: Sequence[_Placed]) -> Iterator[Finding]:
    """One node among equals whose first token takes much longer while it has work."""
    for equals in _by(members, lambda one: one.server.role):
        times = {
            one.node.instance: one.node.ttft_p95_seconds
            for one in equals
            if one.node.ttft_p95_seconds is not None and len(one.node.servers) == 1
        }
        if len(times) < SLOW_PEERS:
            continue
        usual = median(times.values())
        slow = [
            instance
            for instance, seconds in times.items()
            if seconds > SLOW_RATIO * usual and seconds - usual > SLOW_SECONDS
        ]
        # Where many are slow, the load is, and not a node.
        if 0 < len(slow) <= len(times) // SLOW_PEERS:
            for instance in slow:
                yield Finding(
                    "NODE-SLOW",
                    "warn",
                    f"p95 of the first token is {times[instance]:.1f} s, {usual:.1f} s on {len(times) - 1} like it",
                    scope="node",
                    server=instance,
                    evidence={"ttft_p95_seconds": times[instance], "median_seconds": usual, "peers": len(times) - 1},
                    sources={"ttft_p95_seconds": "reported"},
                    advice="compare its HBM, NUMA and tier lines with those of a node that is like it",
                )


def _values(members: Iterable[_Placed], name: str) -> dict[str, list[_Placed]]:
    """Who has which value; who does not tell is left out."""
    found: dict[str, list[_Placed]] = {}
    for one in members:
        value = getattr(one.server, name)
        if value:
            found.setdefault(value, []).append(one)
    return found


def _by(members: Iterable[_Placed], key: Callable[[_Placed], object]) -> list[list[_Placed]]:
    found: dict[object, list[_Placed]] = {}
    for one in members:
        found.setdefault(key(one), []).append(one)
    return list(found.values())


def _instances(members: Iterable[_Placed]) -> list[str]:
    return list(dict.fromkeys(one.node.instance for one in members))


def _names(members: Iterable[_Placed]) -> str:
    names = _instances(members)
    return ", ".join(names[:3]) + (f" +{len(names) - 3}" if len(names) > 3 else "")
