"""What ranktop itself costs the node, counted where it happens and not derived from what it means to do."""

from __future__ import annotations

import os
import sys
import threading
import time

from collectors.procfs import read_file
from ranktop.sample import Asked, OwnUse

WALKS = ("smaps", "smaps_rollup", "numa_maps", "pagemap")
"""Files of /proc/PID whose reading takes the process's mmap lock and visits every page: 5 to 22 ms a GiB."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class _Counts:
    """Of this process. Threads of all sources count here."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: dict[str, Asked] = {}
        self.walks = 0
        self.sees_opens = False


_counts = _Counts()


def count_request(address: str, answer_bytes: int, seconds: float) -> None:
    """One request of `HOST:PORT` is over, well or badly."""
    with _counts.lock:
        before = _counts.asked.get(address, Asked())
        _counts.asked[address] = Asked(
            before.requests + 1, before.answer_bytes + answer_bytes, before.seconds + seconds
        )


def count_page_walks() -> None:
    """From now on every open is looked at, whoever makes it (an audit hook, which cannot be taken off again)."""
    if not _counts.sees_opens:
        _counts.sees_opens = True
        sys.addaudithook(_see)


def own_use() -> OwnUse:
    """As it stands now."""
    times = os.times()
    with _counts.lock:
        asked = dict(_counts.asked)
    return OwnUse(
        time.monotonic(),
        times.user + times.system + times.children_user + times.children_system,
        _rss_bytes(),
        _counts.walks,
        asked,
    )


def _see(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        path = arguments[0]
        name = os.fsdecode(path) if isinstance(path, bytes) else path
        if isinstance(name, str) and name.endswith(WALKS) and name.rpartition("/")[2] in WALKS:
            _counts.walks += 1


def _rss_bytes() -> int | None:
    try:
        return int(read_file("/proc/self/statm").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return None
