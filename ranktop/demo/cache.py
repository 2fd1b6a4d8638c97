"""A two-tier prefix cache of pages, small enough to be simulated exactly.

Like SGLang's UnifiedRadixCache with write_through: a computed page is backed up at once, a page gone from the device
and still on the host is loaded back, and a tier is emptied leaf first in order of last use. Pages are opaque names.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

from msgspec import Struct

Page = tuple[int, int]


class Admission(Struct, frozen=True):
    """What admitting one prefix did, in pages."""

    device_hit: int
    host_hit: int
    loaded: int
    backed_up: int
    dropped: int
    """Computed and not written to the host: no room there."""
    evicted: int
    host_evicted: int


class PageCache:
    """L1 of `device_pages` and L2 of `host_pages`. `private` pages are held by requests and never shared."""

    def __init__(self, device_pages: int, host_pages: int) -> None:
        self._device_capacity = device_pages
        self._host_capacity = host_pages
        self._device: OrderedDict[Page, None] = OrderedDict()
        self._host: OrderedDict[Page, None] = OrderedDict()
        self._locks: Counter[Page] = Counter()
        self._private = 0

    @property
    def locked(self) -> int:
        """Device pages that a running request holds."""
        return sum(1 for page in self._device if self._locks[page]) + self._private

    @property
    def evictable(self) -> int:
        return sum(1 for page in self._device if not self._locks[page])

    @property
    def available(self) -> int:
        return self._device_capacity - len(self._device) - self._private

    @property
    def host_used(self) -> int:
        return len(self._host)

    def match(self, path: tuple[Page, ...]) -> tuple[int, int]:
        """Pages of `path` that the device has from its start on, and then the host."""
        device = _prefix(path, self._device)
        return device, _prefix(path[device:], self._host)

    def admit(self, path: tuple[Page, ...], private: int, *, load_back: bool = True) -> Admission | None:
        """Hold `path` and `private` pages on the device; None when running requests leave no room."""
        device_hit, host_hit = self.match(path)
        fresh = path[device_hit:]
        needed = len(fresh) + private
        free_after_eviction = self.available + sum(
            1 for page in self._device if not self._locks[page] and page not in path
        )
        if needed > free_after_eviction:
            return None
        for page in path:
            self._locks[page] += 1
        evicted = self._make_device_room(needed)
        self._private += private
        for page in fresh:
            self._device[page] = None
        written = host_evicted = dropped = 0
        for page in fresh:
            if page in self._host:
                continue
            gone = self._make_host_room()
            if gone is None:
                dropped += 1
                continue
            host_evicted += gone
            self._host[page] = None
            written += 1
        self._touch(path)
        loaded = host_hit if load_back else 0
        return Admission(device_hit, host_hit, loaded, written, dropped, evicted, host_evicted)

    def release(self, path: tuple[Page, ...], private: int) -> None:
        """A request ended: its path stays cached, its private pages are free."""
        self._private -= private
        for page in path:
            self._locks[page] -= 1
            if not self._locks[page]:
                del self._locks[page]

    def _touch(self, path: tuple[Page, ...]) -> None:
        for page in reversed(path):
            for tier in (self._device, self._host):
                if page in tier:
                    tier.move_to_end(page)

    def _make_device_room(self, pages: int) -> int:
        victims = [page for page in self._device if not self._locks[page]][: max(0, pages - self.available)]
        for page in victims:
            del self._device[page]
        return len(victims)

    def _make_host_room(self) -> int | None:
        """Pages evicted from the host for one more (0 or 1), None when all of them are still on the device."""
        if len(self._host) < self._host_capacity:
            return 0
        victim = next((page for page in self._host if page not in self._device), None)
        if victim is None:
            return None
        del self._host[victim]
        return 1


def _prefix(path: Iterable[Page], tier: OrderedDict[Page, None]) -> int:
    length = 0
    for page in path:
        if page not in tier:
            break
        length += 1
    return length
