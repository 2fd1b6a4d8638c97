"""What more could be said, and which file would tell it."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.inspect.evidence import Evidence
from ranktop.reconcile.verdict import Verdict


def missing(evidence: Evidence, verdict: Verdict) -> tuple[str, ...]:
    """One line for every kind of input that is not there and would add to the verdict."""
    return tuple(_missing(evidence, verdict))


def _missing(evidence: Evidence, verdict: Verdict) -> Iterator[str]:
    sample = verdict.sample
    for server in verdict.servers:
        if server.plan is None:
            why = server.plan_error
            yield f"{server.id}: no plan ({why}): give --launch FILE, a server_info, or its log from the start"
        elif server.calibration is not None and server.calibration.fits is None:
            yield f"{server.id}: no known release gives the logged pool sizes: give --sglang VERSION and the launch"
        if server.id not in sample.metrics:
            yield f"{server.id}: no metrics page: L1 and L2 use, hits, latencies (curl -s URL/metrics)"
        elif not server.tiers.window_seconds:
            yield f"{server.id}: one metrics page: rates need a second one and --every SECONDS"
    if not verdict.servers:
        yield "no server: give a log, a metrics page, a server_info or a launch line"
    if sample.host is None:
        yield "no host memory: what is free beside the pools (cat /proc/meminfo, or free -k)"
    if sample.numa is None:
        yield "no NUMA nodes: headroom by node (numactl -H, or a copy of /sys/devices/system/node)"
    if sample.gpus is None:
        yield "no GPUs: HBM, errors, nearest nodes (nvidia-smi -q -x)"
    if not sample.mappings:
        yield "no mappings of the ranks: what is really mapped (ranktop bundle on the node)"
    if not evidence.kernel and not any(event.source == "measured" for event in sample.events):
        yield "no kernel text: OOM kills, XIDs, failed pins (dmesg -T, or journalctl -k -o json)"
