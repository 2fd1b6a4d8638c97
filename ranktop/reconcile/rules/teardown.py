"""Ranks that end and still hold memory: HOST-TEARDOWN."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.plan.machine import UNPIN_SECONDS_PER_BYTE
from ranktop.plan.plan import GIB
from ranktop.reconcile.rules.rank_death import why_ended
from ranktop.reconcile.rules.rule import Context
from ranktop.sample import RankProcess, Sample

_LEAST_BYTES = 64 << 20


def teardown(context: Context) -> Iterator[Finding]:
    """In D or Z, or gone from /proc, and GPU memory or pools are still held.

    The kernel unpins pools while the process ends, up to a minute per 100 GB: within that time after an end it is
    ordinary. While a server loads, D is how registering looks.
    """
    if not context.stuck_since and not context.gone:
        return
    hbm = hbm_by_pid(context.sample)
    for (server, rank), process in _stuck(context).items():
        since = context.stuck_since[server, rank]
        seconds = context.sample.at_monotonic_seconds - since
        if seconds < context.thresholds.ending_seconds:
            continue
        death = why_ended(context, server, rank, process.pid, context.sample.at_unix_seconds)
        is_ending = process.orphan is True or process.state in ("Z", "X") or death.orderly is not None
        is_long = seconds >= context.thresholds.teardown_seconds
        if not is_ending and (not is_long or context.ready_for_seconds(server) is None):
            continue
        yield from _still_holds(context, process, seconds, hbm.get(process.pid), is_ending=is_ending)
    for gone in context.gone:
        seconds = context.sample.at_unix_seconds - gone.gone_unix_seconds
        held = hbm.get(gone.process.pid)
        if held is not None and seconds >= context.thresholds.ending_seconds:
            yield from _still_holds(context, gone.process, seconds, held, is_ending=True, is_gone=True)


def hbm_by_pid(sample: Sample) -> dict[int, int]:
    """HBM that NVML tells of every process, over all GPUs."""
    found: dict[int, int] = {}
    for gpu in sample.gpus.gpus if sample.gpus else ():
        for process in gpu.processes or ():
            if process.used_bytes:
                found[process.pid] = found.get(process.pid, 0) + process.used_bytes
    return found


def _stuck(context: Context) -> dict[tuple[str, str], RankProcess]:
    ranks = context.sample.processes.ranks if context.sample.processes else ()
    return {key: rank for rank in ranks if (key := (rank.server, str(rank.tag))) in context.stuck_since}


def _still_holds(
    context: Context,
    process: RankProcess,
    seconds: float,
    hbm_bytes: int | None,
    *,
    is_ending: bool,
    is_gone: bool = False,
) -> Iterator[Finding]:
    pools = 0 if is_gone else (process.rss_shmem_bytes or 0) + (process.hugetlb_bytes or 0)
    # A zombie has no memory map left, but the pools of its last reading are what the kernel is unpinning.
    if pools + (hbm_bytes or 0) < _LEAST_BYTES:
        return
    expected = max(pools, _planned_pools(context, process)) * UNPIN_SECONDS_PER_BYTE
    is_in_time = is_ending and seconds <= 2 * expected
    state = "gone from /proc" if is_gone else f"in state {process.state}"
    held = [f"{hbm_bytes / GIB:.2f} GiB of HBM"] if hbm_bytes else []
    held += [f"{pools / 1e9:.2f} GB of host pools"] if pools else []
    yield Finding(
        "HOST-TEARDOWN",
        "info" if is_in_time else "warn",
        f"pid {process.pid} is {state} for {seconds:.0f} s and holds {' and '.join(held)}; unpinning takes up to "
        f"{expected:.0f} s",
        scope="rank",
        server=process.server,
        rank=str(process.tag),
        evidence={
            "pid": process.pid,
            "state": None if is_gone else process.state,
            "seconds": round(seconds),
            "hbm_bytes": hbm_bytes,
            "pools_bytes": pools or None,
            "expected_seconds": round(expected),
        },
        sources=dict.fromkeys(("pid", "state", "seconds", "hbm_bytes", "pools_bytes"), "measured")
        | {"expected_seconds": "inferred"},
        advice="wait before the next launch on this GPU; signals do not hasten an uninterruptible process. If it "
        "stays, read the kernel log for XIDs and hung tasks, and take the node out of service"
        if not is_in_time
        else "wait before the next launch on this GPU: the kernel is still unpinning",
    )


def _planned_pools(context: Context, process: RankProcess) -> int:
    plan = context.plan_of(process.server)
    tag = str(process.tag)
    host = next((rank.host for rank in plan.ranks if rank.rank == tag), None) if plan is not None else None
    return (host.allocated_bytes or 0) if host is not None else 0
