"""How many layers' KV a rank owns: planned, and as it logged it."""

from __future__ import annotations

from ranktop.plan.plan import RankPlan
from ranktop.reconcile.compare import compare
from ranktop.reconcile.layers import logged_range
from ranktop.reconcile.verdict import Line
from ranktop.sample import Event


def layer_line(plan: RankPlan | None, logged: Event | None) -> Line:
    """`logged` is the rank's newest `layer_plan` event; only LayerSplit logs one."""
    owned = logged_range(logged) if logged is not None else None
    return compare(
        "layers.owned",
        plan.layers.owned if plan else None,
        owned.end - owned.start if owned is not None else None,
        unit="count",
        source="logged" if owned is not None else "computed",
        detail="" if owned is not None else "only LayerSplit logs it, and no such line was seen",
    )
