"""Which pids deserve a look: those that are new since the last look, and those that may still change their title.

Listing `/proc` costs about 1 microsecond a process. The kernel hands out pids in ascending order and tells the last
one in `/proc/loadavg`, and a seek in the directory takes a pid as its offset (fs/proc/base.c, proc_pid_readdir): so
one listing from the last pid on finds the new ones whatever the number of old ones.
"""

from __future__ import annotations

import os
from collections import OrderedDict

from collectors.procfs import KeptFile

# fs/proc/base.c: TGID_OFFSET is FIRST_PROCESS_ENTRY (256) plus the entries `self` and `thread-self`.
_TGID_OFFSET = 258
_HIGHEST_PID = 1 << 22
_AUDIT_EVERY = 16
_AUDIT_PIDS = 300
_SWEEP_PIDS = 10
_EAGER_LOOKS = 120
_PATIENT_EVERY = 16


class NewPids:
    """Pids that appeared since the last call. The first call returns all."""

    def __init__(self, proc_root: str) -> None:
        self._root = proc_root
        self._directory = -1
        self._directory = os.open(proc_root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._loadavg = self._open_loadavg()
        self._cursors = (0, 0)
        """Last pids as told at the last two calls: a pid is handed out a moment before its directory is there."""
        self._known: set[str] = set()
        self._calls = 0
        self._audited_upto = 0

    def __del__(self) -> None:
        if self._directory >= 0:
            os.close(self._directory)

    def next(self) -> list[str]:
        """New pids in ascending order. A pid that was reused counts as new. Raises OSError when there is no /proc."""
        cursor = self._cursor()
        older, last = self._cursors
        self._cursors = (last, cursor)
        self._calls += 1
        if cursor == 0 or older == 0:
            return self._all()
        listed: list[int] | None = []
        if not cursor == last == older:
            listed = self._listed(older, cursor) if cursor > older else self._listed_around(older, cursor)
        if listed is not None and self._calls % _AUDIT_EVERY == 0:
            listed = self._audited(listed)
        if listed is None:
            return self._all()
        fresh = [
            str(pid) for pid in sorted(set(listed)) if _handed_out(pid, last, cursor) or str(pid) not in self._known
        ]
        self._known.update(fresh)
        return fresh

    def forget(self, name: str) -> None:
        """The process is gone; its pid will be new when it comes back."""
        self._known.discard(name)

    def _all(self) -> list[str]:
        names = {name for name in os.listdir(self._root) if name.isdigit()}
        fresh = names - self._known
        self._known = names
        return sorted(fresh, key=int)

    def _listed_around(self, above: int, upto: int) -> list[int] | None:
        """Since `above` was handed out the kernel came to its highest pid and began anew."""
        high, low = self._listed(above, _HIGHEST_PID), self._listed(0, upto)
        return high + low if high is not None and low is not None else None

    def _audited(self, listed: list[int]) -> list[int] | None:
        """With the next stretch of all pids: should one have been missed, it is found within minutes."""
        stretch = self._listed(self._audited_upto, _HIGHEST_PID, most=_AUDIT_PIDS)
        if stretch is None:
            return None
        self._audited_upto = stretch[-1] if len(stretch) == _AUDIT_PIDS else 0
        return listed + [pid for pid in stretch if str(pid) not in self._known]

    def _listed(self, above: int, upto: int, most: int | None = None) -> list[int] | None:
        """Process directories of these pids, None where this is no procfs and offsets mean something else."""
        os.lseek(self._directory, _TGID_OFFSET + above + 1, os.SEEK_SET)
        found: list[int] = []
        # The kernel fills a block of some hundreds of entries; what lies behind is never asked for.
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if not entry.name.isdigit() or int(entry.name) <= above:
                    self._loadavg = None
                    return None
                if int(entry.name) > upto or len(found) == most:
                    break
                found.append(int(entry.name))
        return found

    def _open_loadavg(self) -> KeptFile | None:
        """None unless the root is a procfs of the reader's own pid namespace: only then does its last pid count."""
        try:
            if os.readlink(f"{self._root}/self") == str(os.getpid()):
                return KeptFile(f"{self._root}/loadavg")
        except OSError:
            return None
        return None

    def _cursor(self) -> int:
        if self._loadavg is None:
            return 0
        words = self._loadavg.read(256).split()
        return int(words[4]) if len(words) == 5 and words[4].isdigit() else 0


def _handed_out(pid: int, last: int, cursor: int) -> bool:
    """Whether the kernel gave a pid away while its last one went from `last` to `cursor`, perhaps around the end."""
    return last < pid <= cursor if cursor >= last else pid > last or pid <= cursor


class Watchlist:
    """When to look again at a process that was nobody yet.

    A process changes what it is by exec (caught by the second look and by a slow sweep over all), or by a new title:
    a rank is `python -c from multiprocessing.spawn ...` until its imports are done, minutes on a cold page cache.
    """

    def __init__(self) -> None:
        self._looks: dict[str, int] = {}
        self._settled: OrderedDict[str, None] = OrderedDict()

    def watch(self, name: str, *, eager: bool) -> None:
        """Keep an eye on a process that was just looked at. `eager`: it may soon be a rank."""
        looks = self._looks.get(name, 0) + 1
        if eager or looks < 2:
            self._looks[name] = looks
            self._settled.pop(name, None)
        else:
            self._looks.pop(name, None)
            self._settled[name] = None

    def looks(self, name: str) -> int:
        """How often it was looked at while under watch, 0 once it is left to the sweep."""
        return self._looks.get(name, 0)

    def forget(self, name: str) -> None:
        self._looks.pop(name, None)
        self._settled.pop(name, None)

    def due(self) -> list[str]:
        """Pids to look at again in this cycle."""
        again: list[str] = []
        for name, looks in self._looks.items():
            if looks < _EAGER_LOOKS or looks % _PATIENT_EVERY == 0:
                again.append(name)
            else:
                self._looks[name] = looks + 1
        for _ in range(min(_SWEEP_PIDS, len(self._settled))):
            name = next(iter(self._settled))
            self._settled.move_to_end(name)
            again.append(name)
        return again
