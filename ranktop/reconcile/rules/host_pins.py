"""Host pools that the GPU cannot reach directly: HOST-NOT-PINNED."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ranktop.finding import Finding
from ranktop.reconcile.counters import PINS
from ranktop.reconcile.pins import CONTRADICTED_BELOW_RATIO, judge_pins
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.windows import covers
from ranktop.sample import Event

_ADVICE = (
    "copies from an unpinned pool are slow or silently stale: drain this server and relaunch; a single registration of "
    "512 GiB or more fails on drivers from r580 on, so a smaller --hicache-size (or "
    "SGLANG_HICACHE_HOST_REGISTER_CHUNK_GB from 0.5.23) may be needed. "
    "The memlock limit is not it: CUDA pins are not charged to it"
)


def not_pinned(context: Context) -> Iterator[Finding]:
    """cudaHostRegister failed, by the server's or the kernel's log; or fewer pins are out than pools are mapped."""
    since = context.since(context.thresholds.event_seconds)
    failed = {
        (event.server, event.rank): event for event in context.incidents.of("pin_failed", since_unix_seconds=since)
    }
    by_server = {owner: event for owner, event in failed.items() if owner[0] is not None}
    # What the kernel says is the same failure, without the rank.
    for (server, rank), event in (by_server or failed).items():
        yield _failed(event, server, rank)
    if not failed:
        yield from _contradicted(context)


def _failed(event: Event, server: str | None, rank: str | None) -> Finding:
    evidence: dict[str, Any] = {
        name: event.fields[name] for name in ("rc", "size_bytes", "address", "pages") if name in event.fields
    }
    size = event.fields.get("size_bytes")
    rc = event.fields.get("rc")
    what = f"{size / 1e9:.2f} GB" if isinstance(size, int) else "a host buffer"
    return Finding(
        "HOST-NOT-PINNED",
        "breach",
        f"registering {what} with CUDA failed" + (f" (rc={rc})" if rc is not None else f": {event.text[:80]}"),
        scope="rank" if rank is not None else "node",
        server=server,
        rank=rank,
        evidence=evidence,
        sources=dict.fromkeys(evidence, event.source),
        advice=_ADVICE,
    )


def _contradicted(context: Context) -> Iterator[Finding]:
    host, gpus, limits = context.sample.host, context.sample.gpus, context.thresholds
    matched = context.node.line("host.pools").seen
    if host is None or gpus is None or gpus.source == "simulated" or not matched:
        return
    ready = bool(context.servers) and all(server.is_ready for server in context.servers)
    processes = context.sample.processes.ranks if context.sample.processes else ()
    if not ready or any(process.orphan or process.state in ("D", "Z") for process in processes):
        return
    pins = judge_pins(host, int(matched), has_driver=True, loading=False)
    if pins.verdict != "contradicted":
        return
    track = context.history.track(("", "", PINS), limits.sustained_seconds)
    # Unpinning and registering pass through this state within seconds.
    is_lasting = context.since_start or covers(track, limits.sustained_seconds)
    if not is_lasting or max(track.values) >= CONTRADICTED_BELOW_RATIO * matched:
        return
    yield Finding(
        "HOST-NOT-PINNED",
        "warn",
        f"{pins.reason}: some host pool is not pinned",
        evidence={"outstanding_pins_bytes": pins.outstanding_bytes, "mapped_pools_bytes": int(matched)},
        sources={"outstanding_pins_bytes": "measured", "mapped_pools_bytes": "measured"},
        advice="look for 'cudaHostRegister failed' in the server's log and 'Cannot map memory' in the kernel's; the "
        "kernel counts pins for the node only, so which rank it is cannot be told from here",
    )
