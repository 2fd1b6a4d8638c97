"""SGLang's own check of host memory refused a pool: PLAN-HOST-GATE, with the reserve that its message leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.plan.gate import RESERVE_BYTES
from ranktop.reconcile.calibration import checked_pools
from ranktop.reconcile.rules.evidence import evidence, size
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.verdict import ServerVerdict

_SMALL_GB = 0.1


def host_gate(context: Context) -> Iterator[Finding]:
    """`Not enough host memory available` in the log of the newest start."""
    host = context.sample.host
    # A stand-in's host is small, and its reserve with it.
    reserve = host.reserve_bytes if host is not None and host.reserve_bytes is not None else RESERVE_BYTES
    for server in context.servers:
        for rank, event in context.log.newest(server.id, "host_pool_failed").items():
            asked, free = event.fields.get("asked_gb"), event.fields.get("free_gb")
            if not isinstance(asked, int | float) or not isinstance(free, int | float):
                continue
            known = _planned_bytes(server, rank, asked)
            pool = round(asked * 1e9) if known is None else known
            huge = _free_hugepages_bytes(context)
            told = evidence(
                "logged",
                asked_bytes=pool,
                available_bytes=round(free * 1e9),
                reserve_bytes=reserve,
                needed_bytes=pool + reserve,
                hugepages_free_bytes=huge,
            )
            if known is not None:
                told["sources"] |= {"asked_bytes": "computed", "needed_bytes": "computed"}
            yield Finding(
                "PLAN-HOST-GATE",
                "breach",
                f"a pool was refused: {_logged(asked) if known is None else size(known)} + {size(reserve)} reserve = "
                f"{size(pool + reserve)} > {_logged(free)} available"
                + (f"; {size(huge)} of free huge pages do not count" if huge else ""),
                scope="rank" if rank is not None else "server",
                server=server.id,
                rank=rank,
                **told,
                advice="SGLang checks each rank's pool alone, so the sum over ranks needs more still: "
                "`ranktop preflight` prints the largest --hicache-size that fits this host",
            )


def _planned_bytes(server: ServerVerdict, rank: str | None, asked_gb: float) -> int | None:
    """The small pool that the message is about, by the plan: the one of its size in the two decimals that SGLang
    writes. None where these tell enough."""
    if abs(asked_gb) >= _SMALL_GB:
        return None
    ranks = server.plan.ranks if server.plan is not None else ()
    for planned in ranks:
        if planned.host is not None and rank in (None, planned.rank):
            for _, checked in checked_pools(planned.host):
                if checked and round(checked / 1e9, 2) == asked_gb:
                    return checked
    return None


def _logged(gb: float) -> str:
    """What SGLang wrote with two decimals of a GB, as exact as that is where the whole is small."""
    if abs(gb) >= _SMALL_GB:
        return f"{gb:.2f} GB"
    return f"about {gb * 1e3:.0f} MB" if gb else "under 5 MB"


def _free_hugepages_bytes(context: Context) -> int | None:
    host = context.sample.host
    free = [
        pages.free_pages * pages.page_size_bytes
        for pages in (host.hugepages if host is not None else ())
        if pages.free_pages
    ]
    return sum(free) or None
