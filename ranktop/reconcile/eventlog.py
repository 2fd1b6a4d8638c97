"""What the servers' logs have said, by server and kind: facts of a launch stay, however long ago they were logged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ranktop.sample import Event

KEPT = 256
"""Newest events kept of each kind and server."""

_NEW_START = "server_args"
_MAX_STARTS = 8


class EventLog:
    """Events of each server since its newest start. A start (`server_args`) forgets what the launch before it said."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], deque[Event]] = {}
        self._by_rank: dict[tuple[str, str], dict[str | None, Event]] = {}
        self._starts: dict[str, deque[Event]] = {}
        self._last_unix_seconds: dict[str, float] = {}

    def record(self, events: Iterable[Event]) -> None:
        """Add events, oldest first. Those of no server are the host's and not kept here."""
        for event in events:
            server = event.server
            if server is None:
                continue
            if event.kind == _NEW_START:
                self._start(server, event)
                continue
            key = (server, event.kind)
            self._kinds.setdefault(key, deque(maxlen=KEPT)).append(event)
            self._by_rank.setdefault(key, {})[event.rank] = event
            self._last_unix_seconds[server] = max(event.at_unix_seconds, self._last_unix_seconds.get(server, 0.0))

    def all_of(self, server: str, kind: str) -> Sequence[Event]:
        """The newest events of that kind, oldest first."""
        return self._kinds.get((server, kind), ())

    def newest(self, server: str, kind: str) -> Mapping[str | None, Event]:
        """The newest event of that kind of every rank (None: of the main process)."""
        return self._by_rank.get((server, kind), {})

    def starts(self, server: str) -> Sequence[Event]:
        """`server_args` of its newest starts, oldest first."""
        return tuple(self._starts.get(server, ()))

    def last_unix_seconds(self, server: str) -> float | None:
        """When the newest event was logged, None when the log said nothing that ranktop reads."""
        return self._last_unix_seconds.get(server)

    def _start(self, server: str, event: Event) -> None:
        for kept in (self._kinds, self._by_rank):
            for key in [key for key in kept if key[0] == server]:
                del kept[key]
        self._starts.setdefault(server, deque(maxlen=_MAX_STARTS)).append(event)
        self._last_unix_seconds[server] = event.at_unix_seconds
