"""A long recording judged at some of its samples: enough for lines over time and for medians."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.reconcile import Reconciler, Verdict
from ranktop.recording.reader import Recording

MAX_POINTS = 2000
"""A day at 1 Hz is thinned to one sample in 44."""


def thinned(recording: Recording, reconciler: Reconciler, most: int = MAX_POINTS) -> Iterator[tuple[int, Verdict]]:
    """(number, verdict) of at most so many samples and of the last one, evenly spread.

    Rates then span the time between two of them. Findings with a short life can be missed: those that the recorder
    saw stand in the events.
    """
    index = recording.index
    step = max(1, -(-index.count // most))
    if step == 1:
        for recorded in recording.samples():
            yield recorded.seq, reconciler.update(recorded.sample)
        return
    for position in (*range(0, index.count - 1, step), index.count - 1):
        seq = index.seq(position)
        for recorded in recording.samples(seq, seq):
            yield recorded.seq, reconciler.update(recorded.sample)
