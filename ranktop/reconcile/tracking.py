"""Since when a finding holds, and when it closes: clear for some updates, so that a flicker is one finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ranktop.clock import iso_utc
from ranktop.finding import Finding

Key = tuple[str, str | None, str | None]


class Open(Struct, frozen=True):
    """An open finding and for how many updates it has been clear."""

    finding: Finding
    clear_updates: int = 0


def track(
    open_before: Mapping[Key, Open], now: float, findings: Iterable[Finding], close_after_updates: int
) -> dict[Key, Open]:
    """The open findings after this update. A finding that went clear stays, as it was, until it closes."""
    after: dict[Key, Open] = {}
    for finding in findings:
        key = (finding.code, finding.server, finding.rank)
        known = open_before.get(key)
        # A rule that knows when it happened says so: what is looked at once was seen long after.
        since = known.finding.since if known else finding.since or iso_utc(now)
        after[key] = Open(replace(finding, since=since))
    for key, known in open_before.items():
        if key not in after and known.clear_updates + 1 < close_after_updates:
            after[key] = replace(known, clear_updates=known.clear_updates + 1)
    return after
