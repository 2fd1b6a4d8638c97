"""Was something read from L2? The guide's series A, B and C, by marks and counters, never by time to first token.

Source: the guide, "How to prove that a read came from L2": A is a long synthetic prefix, B the same prefix with another
question (it shows reuse, no tier), C the prefix again after other prefixes have pushed it out of L1.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ranktop.reconcile import Verdict
from ranktop.recording.notes import CHANGED, MARK, OPENED, Note


class Series(Struct, frozen=True):
    """One series, from its mark to the next. Shares are of prefill tokens, the highest seen; rates likewise."""

    series: str
    marked: bool
    device_hit: float | None = None
    host_hit: float | None = None
    storage_hit: float | None = None
    load_back_bytes_per_second: float | None = None


class Proof(Struct, frozen=True):
    """`claim` is what may be said; `shown` what it rests on, `not_shown` what is missing."""

    claim: str
    series: list[Series]
    shown: list[str]
    not_shown: list[str]


def proof(verdicts: Sequence[tuple[int, Verdict]], notes: Sequence[Note]) -> Proof:
    """The proof of one recording. `verdicts` with their sample numbers, in order."""
    marks = [note for note in notes if note.kind == MARK]
    starts = {name: next((mark.seq for mark in marks if _is_series(mark.text, name)), None) for name in "ABC"}
    series = [_series(name, start, starts, verdicts) for name, start in starts.items()]
    proven = [note for note in notes if note.kind in (OPENED, CHANGED) and note.code == "L2-PROVEN"]
    in_c = [note for note in proven if starts["C"] is not None and note.seq >= starts["C"]]
    shown = [f"L2-PROVEN at sample {note.seq}: {note.text}" for note in proven]
    missing = [
        f"series {one.series} is not marked (ranktop mark FILE 'series {one.series}')"
        for one in series
        if not one.marked
    ]
    if not proven:
        missing.append("load-back tokens and bytes that rise together with host hits over 60 s (L2-PROVEN)")
    missing.append("that L1 no longer held the blocks before C: SGLang reports no per-prefix residency")
    missing.append("answers equal to those without HiCache: only an outside grader can tell (--attach)")
    if in_c:
        claim = "an L2 read happened in series C"
    elif proven:
        claim = "an L2 read happened; which series it served is not shown"
    elif any((one.host_hit or 0) > 0 or (one.device_hit or 0) > 0 for one in series):
        claim = "compatible with reuse; an L2 read is not shown"
    else:
        claim = "no reuse is shown"
    return Proof(claim, series, shown, missing)


def _series(
    name: str, start: int | None, starts: dict[str, int | None], verdicts: Sequence[tuple[int, Verdict]]
) -> Series:
    if start is None:
        return Series(name, False)
    end = min((other for other in starts.values() if other is not None and other > start), default=None)
    within = [verdict for seq, verdict in verdicts if seq >= start and (end is None or seq < end)]
    return Series(
        name,
        True,
        _highest([verdict.tiers.device_hit for verdict in within]),
        _highest([verdict.tiers.host_hit for verdict in within]),
        _highest([verdict.tiers.storage_hit for verdict in within]),
        _highest([verdict.transfers.load_back_bytes_per_second for verdict in within]),
    )


def _is_series(text: str, name: str) -> bool:
    words = text.lower().replace(":", " ").split()
    return len(words) >= 2 and words[0] == "series" and words[1] == name.lower()


def _highest(values: list[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
