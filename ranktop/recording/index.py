"""Which samples a recording holds and when they were taken: spans in memory, found by number, position or time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import NamedTuple


class Span(NamedTuple):
    """Samples `first_seq` to `first_seq + samples - 1`: a chunk, or one row of the tail."""

    first_seq: int
    samples: int
    t0: float
    t1: float
    is_chunk: bool
    uses: str = ""
    """`chunk.uses`, as it is stored."""

    @property
    def last_seq(self) -> int:
        """The number of its newest sample."""
        return self.first_seq + self.samples - 1


class Index:
    """Spans in the order in which they were recorded, none overlapping another."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = sorted(spans)
        self._firsts = [span.first_seq for span in self.spans]
        self._before = [0, *accumulate(span.samples for span in self.spans)]
        # The wall clock may have been set back: the latest time so far never goes back.
        self._latest = list(accumulate((span.t1 for span in self.spans), max))

    @property
    def count(self) -> int:
        """Samples in all."""
        return self._before[-1]

    def span_of(self, seq: int) -> Span | None:
        """The span that holds that sample."""
        place = bisect_right(self._firsts, seq) - 1
        if place < 0 or seq > self.spans[place].last_seq:
            return None
        return self.spans[place]

    def span_at(self, at_unix_seconds: float) -> Span | None:
        """The first span that reaches that time; the last one when none does."""
        if not self.spans:
            return None
        return self.spans[min(bisect_left(self._latest, at_unix_seconds), len(self.spans) - 1)]

    def position(self, seq: int) -> int:
        """How many samples were recorded before that one."""
        place = bisect_right(self._firsts, seq) - 1
        if place < 0:
            return 0
        span = self.spans[place]
        return self._before[place] + min(seq - span.first_seq, span.samples)

    def seq(self, position: int) -> int:
        """The number of the sample at a position; positions outside are the first or the last one."""
        position = min(max(position, 0), self.count - 1)
        place = bisect_right(self._before, position) - 1
        return self.spans[place].first_seq + position - self._before[place]

    def missing(self) -> int:
        """Samples whose numbers are missing between the first and the last."""
        if not self.spans:
            return 0
        return self.spans[-1].last_seq - self.spans[0].first_seq + 1 - self.count
