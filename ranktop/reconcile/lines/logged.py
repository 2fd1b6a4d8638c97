"""A rank's host pools by its log alone, where its maps cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from ranktop.plan.plan import RankPlan
from ranktop.reconcile.calibration import checked_pools
from ranktop.reconcile.compare import compare, reading
from ranktop.reconcile.lines.host import expected_pools
from ranktop.reconcile.logged import HALF_DIGIT_BYTES, LoggedPool, pool_bytes
from ranktop.reconcile.verdict import Line

_LABELS_SHOWN = 3
_PLANNED = ("host.primary", "host.indexer", "host.draft", "host.draft_indexer")


def logged_free_line(free_bytes: int) -> Line:
    """`hbm.free` by the log, where NVML does not tell it. The log's two decimals are GiB, though it prints GB."""
    return reading("hbm.free", free_bytes, source="logged")


def logged_pool_lines(
    plan: RankPlan | None, pools: Sequence[LoggedPool], *, as_allocated: bool = False
) -> tuple[Line, ...]:
    """One line a pool of the plan, and `host.other` for the sum of those it does not know.

    Planned are the bytes that SGLang checks and logs, with two decimals of 1e9. `as_allocated`: what it allocates, as
    for ranks beside this one whose maps are read; the index pool has a page a layer more than was logged.
    """
    checked = dict(checked_pools(plan.host)) if plan is not None and plan.host is not None else {}
    allocated = {pool.line: pool.planned_bytes for pool in expected_pools(plan)}
    planned = {**checked, **allocated} if as_allocated else checked
    found: list[Line] = []
    for line in _PLANNED:
        seen = pool_bytes(pools, line)
        if seen is not None:
            seen += (planned.get(line) or 0) - (checked.get(line) or 0)
        if seen is None and not planned.get(line):
            continue
        found.append(
            compare(
                line,
                planned.get(line) or None,
                seen,
                tolerance=HALF_DIGIT_BYTES,
                source="logged" if seen is not None else "computed",
                detail="" if seen is not None else "not in this log",
            )
        )
    others = [pool for pool in pools if pool.line not in _PLANNED]
    if others:
        labels = list(dict.fromkeys(pool.label or "a pool of another kind" for pool in others))
        what = ", ".join(labels[:_LABELS_SHOWN]) + (", ..." if len(labels) > _LABELS_SHOWN else "")
        total = sum(pool.size_bytes for pool in others)
        found.append(compare("host.other", None, total, source="logged", detail=f"{len(others)} logged: {what}"))
    return tuple(found)
