"""Was the rollback seen? A flag-free process that completes requests, and a host that is back where it was.

Source: the HiCache audit, "Test eviction, corruption, and rollback": a configuration in version control is no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ranktop.clock import iso_utc
from ranktop.reconcile import Verdict
from ranktop.recording.notes import MARK, Note

OBJECTIVE_SECONDS = 900.0
PRESSURE_RISE_PERCENT = 1.0
AVAILABLE_DROP_BYTES = 2 * 10**9


class Rollback(Struct, frozen=True):
    """`at` is the stamp for the packet: when all that can be seen was seen. None: no rollback is shown."""

    at: str | None
    began: str | None
    seconds: float | None
    within_objective: bool | None
    shown: list[str]
    not_shown: list[str]


def rollback(
    verdicts: Sequence[tuple[int, Verdict]], notes: Sequence[Note], objective_seconds: float = OBJECTIVE_SECONDS
) -> Rollback:
    """From the `rollback` mark, else from the last sample with HiCache on, to the first sample that shows it whole."""
    marked = next(
        (note.at_unix_seconds for note in notes if note.kind == MARK and note.text.lower().startswith("rollback")), None
    )
    began = marked if marked is not None else _last_with_hicache(verdicts)
    not_shown = ["shared L3 untouched: ranktop sees no storage from outside (attach its listing before and after)"]
    if began is None or not verdicts:
        return Rollback(None, None, None, None, [], ["no rollback: no mark, and HiCache was on to the end", *not_shown])
    after = [verdict for _, verdict in verdicts if verdict.sample.at_unix_seconds > began]
    steps = {
        "a process without HiCache runs": next((one for one in after if _is_flag_free(one)), None),
        "it completes requests": next((one for one in after if _is_flag_free(one) and _serves(one)), None),
        "host pressure and available memory are back at the beginning's": next(
            (one for one in after if _is_flag_free(one) and _is_at_baseline(one, verdicts[0][1])), None
        ),
    }
    shown = [f"{what}: {iso_utc(one.sample.at_unix_seconds)}" for what, one in steps.items() if one is not None]
    missing = [what for what, one in steps.items() if one is None]
    seen = [one.sample.at_unix_seconds for one in steps.values() if one is not None]
    if missing:
        return Rollback(None, iso_utc(began), None, None, shown, [*missing, *not_shown])
    seconds = max(seen) - began
    return Rollback(iso_utc(max(seen)), iso_utc(began), seconds, seconds <= objective_seconds, shown, not_shown)


def _is_flag_free(verdict: Verdict) -> bool:
    plans = [server.plan for server in verdict.servers]
    return bool(plans) and all(plan is not None and not plan.launch.hicache for plan in plans)


def _last_with_hicache(verdicts: Sequence[tuple[int, Verdict]]) -> float | None:
    """The last sample with HiCache on, when samples without it follow."""
    with_it = [
        place
        for place, (_, verdict) in enumerate(verdicts)
        if any(server.plan is not None and server.plan.launch.hicache for server in verdict.servers)
    ]
    if not with_it or not any(_is_flag_free(verdict) for _, verdict in verdicts[with_it[-1] :]):
        return None
    return verdicts[with_it[-1]][1].sample.at_unix_seconds


def _serves(verdict: Verdict) -> bool:
    finished = any(one.finish not in (None, "abort") for found in verdict.sample.requests.values() for one in found)
    return finished or any((server.service.tokens_per_second or 0) > 0 for server in verdict.servers)


def _is_at_baseline(verdict: Verdict, first: Verdict) -> bool:
    pressure, available = (
        [one.node.line(name).seen for one in (first, verdict)] for name in ("host.pressure", "host.available")
    )
    if None in pressure or None in available:
        return False
    return (pressure[1] or 0) <= (pressure[0] or 0) + PRESSURE_RISE_PERCENT and (available[1] or 0) >= (
        available[0] or 0
    ) - AVAILABLE_DROP_BYTES
