"""What happened, newest last: log events, findings that open and close, sources that change state."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ranktop.finding import SEVERITIES, Finding
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.verdict import Verdict
from tui.happening import BATCHES, FOLD_SECONDS, Happening, logged

STATE_WORDS = {"no_data": "not here"}
"""How a source stands, where its own word is none for people."""

KEEP = 1000
KEEP_BATCHES = 300


class EventLog:
    """The last `KEEP` happenings, and the last `KEEP_BATCHES` batches, from successive verdicts."""

    def __init__(self) -> None:
        self._rows: deque[Happening] = deque(maxlen=KEEP)
        self._batches: deque[Happening] = deque(maxlen=KEEP_BATCHES)
        self._open: dict[tuple[str, str | None, str], Finding] = {}
        self._states: dict[tuple[str, str | None], str] = {}

    def push(self, verdict: Verdict) -> None:
        """Compare with the verdict before."""
        at = verdict.sample.at_unix_seconds
        for row in logged(verdict.sample.events):
            _add(self._batches if row.kind in BATCHES else self._rows, row)
        self._rows.extend(self._turns(at, verdict.findings))
        for state in verdict.sample.sources:
            key = (state.name, state.server)
            if self._states.get(key, state.state) != state.state:
                role = "warn" if state.state in ("error", "stale") else "muted"
                why = f": {state.detail}" if state.detail else ""
                text = f"{state.name} is {STATE_WORDS.get(state.state, state.state)}{why}"
                self._rows.append(Happening(at, "source", state.server or "", text, role))
            self._states[key] = state.state

    def _turns(self, at: float, findings: Sequence[Finding]) -> Iterator[Happening]:
        """What opened, closed, or went on with another severity since the verdict before."""
        before, self._open = self._open, {(one.code, one.server, one.severity): one for one in findings}
        gone = {(one.code, one.server): one for key, one in before.items() if key not in self._open}
        for key, finding in self._open.items():
            if key not in before:
                was = gone.pop((finding.code, finding.server), None)
                kind = "opened" if was is None else "worse" if _badness(finding) > _badness(was) else "better"
                text = f"{finding.code} {finding.message}"
                yield Happening(at, kind, _where(finding), text, finding.severity)
        codes = {finding.code for finding in findings}
        for finding in gone.values():
            if finding.code in codes:
                yield Happening(at, "closed", _where(finding), f"{finding.code}; another one is open", "muted")
            else:
                yield Happening(at, "closed", _where(finding), finding.code, "ok")

    def until(self, when: float) -> EventLog:
        """What had happened by `when` (Unix seconds)."""
        then = EventLog()
        then._rows.extend(row.until(when) for row in self._rows if row.at <= when)
        then._batches.extend(row.until(when) for row in self._batches if row.at <= when)
        return then

    def batches(self) -> tuple[Happening, ...]:
        """Log lines of batches, oldest first."""
        return tuple(self._batches)

    def rows(self) -> tuple[Happening, ...]:
        """All but batches, oldest first."""
        return tuple(self._rows)


def _add(rows: deque[Happening], new: Happening) -> None:
    """Ranks whose lines came with this sample join those whose lines came with the one before."""
    for place in range(len(rows) - 1, -1, -1):
        row = rows[place]
        if not new.ranks or row.at < new.at - FOLD_SECONDS:
            break
        # Of the many, few have the same text.
        if row.text == new.text and (joined := row.joined(new)) is not None:
            rows[place] = joined
            return
    rows.append(new)


def _badness(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def _where(finding: Finding) -> str:
    return rank_span(finding.ranks) or finding.server or "node"
