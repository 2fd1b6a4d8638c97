"""Reserved huge pages of the host or of a NUMA node (Documentation/admin-guide/mm/hugetlbpage.rst of Linux)."""

from __future__ import annotations

import os

from collectors.procfs import KeptFile
from ranktop.sample import HugePages


class HugePageFiles:
    """The counters of every huge page size in one folder, kept open. A missing folder has none."""

    def __init__(self, folder: str) -> None:
        self._sizes: list[tuple[int, KeptFile, KeptFile | None, KeptFile | None]] = []
        for name in _listed(folder):
            size = page_size_bytes(name)
            total = _opened(f"{folder}/{name}/nr_hugepages")
            if size is not None and total is not None:
                free = _opened(f"{folder}/{name}/free_hugepages")
                self._sizes.append((size, total, free, _opened(f"{folder}/{name}/resv_hugepages")))

    def read(self) -> tuple[HugePages, ...]:
        """Ascending by page size. A size without reserved pages is told as such; nodes tell no `reserved_pages`."""
        return tuple(
            HugePages(size, total_pages=_count(total), free_pages=_count(free), reserved_pages=_count(reserved))
            for size, total, free, reserved in self._sizes
        )


def page_size_bytes(folder_name: str) -> int | None:
    """`hugepages-2048kB` in bytes."""
    digits = folder_name.removeprefix("hugepages-").removesuffix("kB")
    return int(digits) * 1024 if digits.isdecimal() else None


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder), key=lambda name: page_size_bytes(name) or 0)
    except OSError:
        return []


def _opened(path: str) -> KeptFile | None:
    try:
        return KeptFile(path)
    except OSError:
        return None


def _count(file: KeptFile | None) -> int | None:
    if file is None:
        return None
    try:
        raw = file.read(64).strip()
    except OSError:
        return None
    return int(raw) if raw.isdigit() else None
