"""SGLang's own check of host memory refused a pool: PLAN-HOST-GATE, with the reserve that its message leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.plan.gate import RESERVE_BYTES
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import Context


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
            needed = asked + reserve / 1e9
            huge = _free_hugepages_bytes(context)
            yield Finding(
                "PLAN-HOST-GATE",
                "breach",
                f"a pool was refused: {asked:.2f} GB + {reserve / 1e9:.2f} GB reserve = {needed:.2f} GB > "
                f"{free:.2f} GB available" + (f"; {huge / 1e9:.2f} GB of free huge pages do not count" if huge else ""),
                scope="rank" if rank is not None else "server",
                server=server.id,
                rank=rank,
                **evidence(
                    "logged",
                    asked_bytes=round(asked * 1e9),
                    available_bytes=round(free * 1e9),
                    reserve_bytes=reserve,
                    needed_bytes=round(asked * 1e9) + reserve,
                    hugepages_free_bytes=huge,
                ),
                advice="SGLang checks each rank's pool alone, so the sum over ranks needs more still: "
                "`ranktop preflight` prints the largest --hicache-size that fits this host",
            )


def _free_hugepages_bytes(context: Context) -> int | None:
    host = context.sample.host
    free = [
        pages.free_pages * pages.page_size_bytes
        for pages in (host.hugepages if host is not None else ())
        if pages.free_pages
    ]
    return sum(free) or None
