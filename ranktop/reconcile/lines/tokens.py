"""A rank's tokens in the GPU pool (L1) and the host pool (L2), and how many drafted tokens it accepts."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.plan.plan import RankPlan
from ranktop.reconcile.compare import compare, reading
from ranktop.reconcile.reported import Reported
from ranktop.reconcile.verdict import Line

_UNSAID = "no rank of this group reports it"


def token_lines(plan: RankPlan | None, said: Reported, stale: bool) -> Iterator[Line]:
    """L1 and L2 occupancy, acceptance."""
    group = said.tokens_are_group
    yield reading("l1.tokens", said.l1_capacity_tokens, unit="tokens", source="reported", missing=_UNSAID, stale=stale)
    for name, value in (
        ("l1.used", said.l1_used_tokens),
        ("l1.evictable", said.l1_evictable_tokens),
        ("l1.available", said.l1_available_tokens),
        ("l2.used", said.l2_used_tokens),
    ):
        yield reading(name, value, unit="tokens", source="reported", missing=_UNSAID, group=group, stale=stale)
    planned = plan.host.tokens if plan and plan.host else None
    yield compare(
        "l2.total",
        planned,
        said.l2_total_tokens,
        unit="tokens",
        source="reported" if said.l2_total_tokens is not None else "computed",
        detail="" if said.l2_total_tokens is not None else _UNSAID,
        group=group,
        stale=stale,
    )
    for name, value, unit in (
        ("spec.accept_length", said.accept_length, "count"),
        ("spec.accept_rate", said.accept_rate, "ratio"),
    ):
        yield reading(
            name, value, unit=unit, source="reported", missing="no speculation seen", group=group, stale=stale
        )
