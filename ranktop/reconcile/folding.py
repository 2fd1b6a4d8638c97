"""Roots and effects: a finding that another one explains is listed under it and not beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ranktop.finding import Finding

EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {
    "L2-GAUGE-LIES": ("HOST-POOL-OVER", "HOST-POOL-UNDER", "HOST-POOL-MISSING"),
    "HOST-HEADROOM": ("HOST-ANON-LEAK", "HOST-POOL-OVER"),
    "HOST-PRESSURE": ("HOST-ANON-LEAK", "HOST-HEADROOM", "HOST-CGROUP"),
    "HOST-SWAP": ("HOST-ANON-LEAK", "HOST-HEADROOM", "HOST-CGROUP"),
    "RANK-DEAD": ("HOST-OOM-KILL", "GPU-LOST", "GPU-XID", "PLAN-HOST-GATE"),
    "SERVER-HUNG": ("RANK-DEAD", "GPU-LOST", "GPU-XID"),
    "METRICS-OFF": ("RANK-DEAD",),
    "METRICS-TIMEOUT": ("RANK-DEAD", "SERVER-HUNG"),
    "METRICS-STALE": ("RANK-DEAD", "SERVER-HUNG", "PD-STUCK"),
    "PD-STUCK": ("PD-RANK-MISSING", "RANK-DEAD"),
    "PD-FAILURES": ("PD-RANK-MISSING", "PD-TRANSPORT", "RANK-DEAD"),
    "LAYER-DISAGREE": ("LAYER-RANGE",),
    "L2-NEVER-READ": ("L2-PHANTOM-HIT",),
    "HOST-UNREACHABLE-POOL": ("L2-DROPPED",),
}
"""Effect -> possible roots, the likeliest first. Only where the mechanism is known, never by time alone."""


def fold_effects(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Link effects to the open root that concerns the same ranks; each effect follows its root."""
    roots = {number: _root(finding, findings) for number, finding in enumerate(findings)}
    effects: dict[int, list[int]] = {}
    for number, root in roots.items():
        if root is not None:
            effects.setdefault(root, []).append(number)
    ordered: list[Finding] = []
    placed: set[int] = set()

    def place(number: int) -> None:
        if number in placed:
            return
        placed.add(number)
        root, own = roots[number], effects.get(number, [])
        ordered.append(
            replace(
                findings[number],
                causes=(findings[root].code,) if root is not None else (),
                effects=tuple(findings[effect].code for effect in own),
            )
        )
        for effect in own:
            place(effect)

    for number, root in roots.items():
        if root is None:
            place(number)
    # A ring of explanations has no root: its members stand for themselves.
    for number in roots:
        place(number)
    return tuple(ordered)


def _root(effect: Finding, findings: Sequence[Finding]) -> int | None:
    for code in EXPLAINED_BY.get(effect.code, ()):
        for number, candidate in enumerate(findings):
            if candidate.code == code and _concerns(candidate, effect):
                return number
    return None


def _concerns(root: Finding, effect: Finding) -> bool:
    """A finding of the node concerns everything on it; else server and, where both name ranks, ranks must meet."""
    if root.server is None or effect.server is None:
        return True
    if root.server != effect.server:
        return False
    return not root.ranks or not effect.ranks or bool(set(root.ranks) & set(effect.ranks))
