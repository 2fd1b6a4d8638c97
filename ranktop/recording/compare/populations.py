"""Finished requests by where their prefix came from. Populations are never averaged together."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ranktop.recording.notes import MARK, Note
from ranktop.recording.reader import Recording
from ranktop.sample import RequestRecord

POPULATIONS = ("cold", "l1", "l2", "l3", "partial")
"""As the records tell them. A miss is in `cold`: no record tells a first sight from a miss."""

FAILED = frozenset({"abort"})
WARM_UP, TRIAL = "warm", "trial"
"""What a mark begins with that starts warming up, or a trial."""


class Quantiles(Struct, frozen=True):
    """Seconds. A tail needs requests behind it: None with fewer than 20 (p95) or 100 (p99)."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Population(Struct, frozen=True):
    """One population. `failed` are among `requests`; latencies are those of requests that finished."""

    name: str
    requests: int
    failed: int
    ttft_seconds: Quantiles
    e2e_seconds: Quantiles
    accept_length: float | None = None
    """Weighted by verify steps."""


class Requests(Struct, frozen=True):
    """What was measured, and what was left out and why."""

    populations: dict[str, Population]
    requests: int
    failed: int
    trials: int
    warm_ups: int
    excluded: int
    """Requests that finished while a warm-up was marked."""
    other: int
    """Requests whose record does not tell its population."""


def requests_of(recording: Recording, notes: Iterable[Note], first_seq: int, last_seq: int) -> Requests | None:
    """The requests of a recording; None when it has no request records."""
    marks = [note for note in notes if note.kind == MARK]
    kept: list[RequestRecord] = []
    excluded, before, is_told = 0, {}, False
    for seq, server, records in recording.changes("requests", first_seq, last_seq):
        is_told = True
        # A read stays in the samples until the next one.
        if before.get(server) == records:
            continue
        before[server] = records
        if _is_warming_up(marks, seq):
            excluded += len(records)
        else:
            kept.extend(records)
    if not is_told:
        return None
    by_name = {name: [one for one in kept if one.population == name] for name in POPULATIONS}
    return Requests(
        {name: _population(name, found) for name, found in by_name.items() if found},
        len(kept),
        sum(one.finish in FAILED for one in kept),
        sum(mark.text.lower().startswith(TRIAL) for mark in marks),
        sum(mark.text.lower().startswith(WARM_UP) for mark in marks),
        excluded,
        len(kept) - sum(map(len, by_name.values())),
    )


def _is_warming_up(marks: Sequence[Note], seq: int) -> bool:
    last = ""
    for mark in marks:
        if mark.seq > seq:
            break
        if mark.text.lower().startswith((WARM_UP, TRIAL)):
            last = mark.text.lower()
    return last.startswith(WARM_UP)


def _population(name: str, found: list[RequestRecord]) -> Population:
    done = [one for one in found if one.finish not in FAILED]
    steps = [
        (one.accept_length, one.verify_steps) for one in done if one.accept_length is not None and one.verify_steps
    ]
    total = sum(count for _, count in steps)
    return Population(
        name,
        len(found),
        len(found) - len(done),
        quantiles([one.ttft_seconds for one in done if one.ttft_seconds is not None]),
        quantiles([one.e2e_seconds for one in done if one.e2e_seconds is not None]),
        sum(length * count for length, count in steps) / total if total else None,
    )


def quantiles(values: list[float]) -> Quantiles:
    """p50, and the tails as far as the number of values carries them."""
    if len(values) < 2:
        return Quantiles(*values)
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return Quantiles(cuts[49], cuts[94] if len(values) >= 20 else None, cuts[98] if len(values) >= 100 else None)
