"""Where the pages of every rank's pools lie: a jittered sample of each mapping, every ten seconds."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Mapping

from collectors.move_pages import PageNodes, sample_addresses, tally
from ranktop.sample import Mapping as PoolMapping
from ranktop.sample import NoData, Placement, Processes, SourceError

SAMPLE_PAGES = 256
"""At worst +-6 points at 95 % (see `share_interval_percent`); 1024 pages give +-3."""
PERIOD_SECONDS = 10.0
_MOST_MAPPINGS = 8
"""Of one rank, largest first: pools are few and large, torch's pinned blocks many and small."""


class PlacementCollector:
    """Placements by pid. `mappings` gives what the pools collector saw last."""

    name = "placement"
    part = "placements"
    server = None

    def __init__(self, mappings: Callable[[], Mapping[int, tuple[PoolMapping, ...]]]) -> None:
        self._mappings = mappings
        self._asks: PageNodes | None = None
        self._rng = random.Random()
        self._covered: frozenset[int] = frozenset()

    @property
    def period_seconds(self) -> float:
        """Ten seconds, or one while there are ranks of which no page was sampled yet."""
        return PERIOD_SECONDS if self._covered and self._covered >= self._mappings().keys() else 1.0

    def read(self, processes: Processes | None, now: float) -> dict[int, tuple[Placement, ...]]:
        if self._asks is None:
            try:
                self._asks = PageNodes()
            except NotImplementedError as reason:
                raise NoData(str(reason), "not_supported") from reason
        mappings = self._mappings()
        if not mappings:
            raise NoData("no pool of a rank seen yet", "waiting")
        self._covered = frozenset(mappings)
        found: dict[int, tuple[Placement, ...]] = {}
        refused: OSError | None = None
        for pid, pools in mappings.items():
            largest = sorted(pools, key=lambda pool: pool.size_bytes, reverse=True)[:_MOST_MAPPINGS]
            try:
                found[pid] = tuple(
                    self._sampled(self._asks, pool, now) for pool in largest if pool.resident is not False
                )
            except OSError as error:
                if error.errno != errno.ESRCH:
                    refused = error
        if refused is not None and not found:
            raise SourceError(
                f"move_pages: {refused.strerror} (needs the ranks' own user or CAP_SYS_PTRACE; a container's seccomp "
                "profile may forbid it)",
                "no_permission" if refused.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS) else "error",
            )
        return found

    def _sampled(self, asks: PageNodes, pool: PoolMapping, now: float) -> Placement:
        addresses = sample_addresses(pool.start_address, pool.size_bytes, pool.page_size_bytes, SAMPLE_PAGES, self._rng)
        counted = tally(asks.query(pool.pid, addresses))
        return Placement(
            pid=pool.pid,
            start_address=pool.start_address,
            sampled_pages=len(addresses),
            pages_by_node=counted.by_node,
            absent_pages=counted.absent,
            at_unix_seconds=now,
        )
