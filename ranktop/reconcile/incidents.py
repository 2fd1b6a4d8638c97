"""Events that say of an end or a fault, of any source, kept by kind.

Kinds of the kernel's log and NVML: `collectors/kernel_messages.py`, `collectors/xid.py`; of servers' logs:
`collectors/serverlog_lines.py`. Unlike what a launch logs, they outlive the next start of their server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from ranktop.sample import Event

MAX_OF_A_KIND = 200

KINDS = frozenset(
    {
        "oom_kill",
        "oom_group",
        "xid",
        "pin_failed",
        "driver_mismatch",
        "out_of_memory",
        "aborted_oom",
        "retract",
        "traceback",
        "signal",
        "numa_failed",
    }
)


class Incidents:
    """The newest events of every such kind, oldest first."""

    def __init__(self) -> None:
        self._by_kind: dict[str, deque[Event]] = {}

    def record(self, events: Iterable[Event]) -> None:
        """Add events in the order in which they were read; other kinds are left out."""
        for event in events:
            if event.kind in KINDS:
                self._by_kind.setdefault(event.kind, deque(maxlen=MAX_OF_A_KIND)).append(event)

    def of(self, *kinds: str, since_unix_seconds: float = float("-inf")) -> Iterator[Event]:
        """The events of these kinds not older than that, kind by kind."""
        for kind in kinds:
            for event in self._by_kind.get(kind, ()):
                if event.at_unix_seconds >= since_unix_seconds:
                    yield event
