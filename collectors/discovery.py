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
_FULL_LISTING_EVERY = 60
_SWEEP_PIDS = 20
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

    def __del__(self) -> None:
        if self._directory >= 0:
            os.close(self._directory)

    def next(self) -> list[str]:
        """New pids in ascending order. A pid that was reused counts as new. Raises OSError when there is no /proc."""
        cursor = self._cursor()
        older, last = self._cursors
        self._cursors = (last, cursor)
        self._calls += 1
        if cursor == 0 or cursor < last or older == 0 or self._calls % _FULL_LISTING_EVERY == 0:
            return self._all(reused_above=last, reused_upto=cursor)
        if cursor == last == older:
            return []
        listed = self._listed_from(older + 1)
        if listed is None:
            return self._all(reused_above=last, reused_upto=cursor)
        fresh = [name for name in listed if name not in self._known or int(name) > last]
        self._known.update(fresh)
        return fresh

    def forget(self, name: str) -> None:
        """The process is gone; its pid will be new when it comes back."""
        self._known.discard(name)

    def _all(self, reused_above: int, reused_upto: int) -> list[str]:
        names = {name for name in os.listdir(self._root) if name.isdigit()}
        fresh = names - self._known
        if 0 < reused_upto < reused_above:
            fresh |= {name for name in names if int(name) <= reused_upto or int(name) > reused_above}
        self._known = names
        return sorted(fresh, key=int)

    def _listed_from(self, pid: int) -> list[str] | None:
        """Process directories from `pid` on, None where this is no procfs and offsets mean something else."""
        os.lseek(self._directory, _TGID_OFFSET + pid, os.SEEK_SET)
        names = os.listdir(self._directory)
        if all(name.isdigit() and int(name) >= pid for name in names):
            return names
        self._loadavg = None
        return None

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
