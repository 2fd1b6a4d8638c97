"""HBM that no budget explains: HBM-OVER, HBM-SKEW, HBM-ORPHAN."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from ranktop.finding import Finding
from ranktop.plan.plan import GIB
from ranktop.reconcile.lives import RankKey
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.rules.teardown import hbm_by_pid
from ranktop.reconcile.trend import trend
from ranktop.reconcile.verdict import RankVerdict
from ranktop.reconcile.windows import covers
from ranktop.reconcile.wording import counted
from ranktop.sample import Event, Gpu

_LEAST_PEERS = 2


def hbm_over(context: Context) -> Iterator[Finding]:
    """An allocation on the GPU failed; or what is neither weights, KV nor graphs passed its own baseline and still
    rises, or the server retracts requests for memory. Little free HBM alone is how SGLang is meant to run.
    """
    since = context.since(context.thresholds.event_seconds)
    failures = _failures(context, since)
    for (server, rank), event in failures.items():
        yield _failed(context, event, server, rank)
    retracting = {
        event.server
        for event in context.incidents.of(
            "retract", since_unix_seconds=context.since(context.thresholds.hbm_rising_seconds)
        )
    }
    for rank in context.ranks:
        line = rank.line("hbm.rest")
        if line.status != "over" or (rank.server, rank.rank) in failures:
            continue
        rise = _rise(context, rank)
        if rise is not None or rank.server in retracting:
            yield _over(rank, rise)


def hbm_skew(context: Context) -> Iterator[Finding]:
    """A rank's process moved away from where it stood against the median of its peers when all were steady."""
    tolerance = context.thresholds.hbm_tolerance_bytes
    for server in context.servers:
        groups: dict[str, dict[RankKey, int]] = {}
        for rank in context.ranks_of(server.id):
            settled = context.hbm.get((rank.server, rank.rank))
            process = rank.line("hbm.process").seen
            if process is not None and settled is not None and settled.is_settled and settled.process_bytes is not None:
                # A DP group has its own traffic, a pipeline stage its own layers.
                groups.setdefault(_group(context, rank), {})[rank.server, rank.rank] = int(process)
        for now in groups.values():
            if len(now) > _LEAST_PEERS:
                then = {key: context.hbm[key].process_bytes or 0 for key in now}
                changes = [process - then[key] for key, process in now.items()]
                # A median moves no further than what moves furthest, so no offset changed by more than this.
                if max(changes) - min(changes) > tolerance:
                    yield from _moved(now, then, tolerance)


def hbm_orphan(context: Context) -> Iterator[Finding]:
    """A scheduler without its server holds HBM; or a process that is no rank here does."""
    held = hbm_by_pid(context.sample)
    processes = context.sample.processes
    ranks = processes.ranks if processes and context.orphan_since else ()
    source = context.sample.gpus.source if context.sample.gpus else "measured"
    for rank in ranks:
        since = context.orphan_since.get((rank.server, str(rank.tag)))
        used = held.get(rank.pid)
        if since is None or not used or rank.state in ("D", "Z", "X"):
            continue
        seconds = context.sample.at_monotonic_seconds - since
        if seconds >= context.thresholds.ending_seconds:
            yield Finding(
                "HBM-ORPHAN",
                "breach",
                f"pid {rank.pid} holds {used / GIB:.2f} GiB of HBM, its server is gone for {seconds:.0f} s (parent "
                f"{rank.parent_pid})",
                scope="rank",
                server=rank.server,
                rank=str(rank.tag),
                evidence={
                    "pid": rank.pid,
                    "start_ticks": rank.start_ticks,
                    "parent_pid": rank.parent_pid,
                    "hbm_bytes": used,
                },
                sources={"hbm_bytes": source, "pid": "measured", "start_ticks": "measured", "parent_pid": "measured"},
                advice=f"end it before the next launch: SIGTERM to pid {rank.pid} of ranktop's own pid namespace, "
                f"after checking that its start time is still {rank.start_ticks} ticks since boot",
            )
    yield from _foreign(context, held, source)


def _failures(context: Context, since: float) -> dict[tuple[str | None, str | None], Event]:
    found: dict[tuple[str | None, str | None], Event] = {}
    for event in context.incidents.of("traceback", "out_of_memory", "aborted_oom", since_unix_seconds=since):
        if event.kind != "traceback" or str(event.fields.get("error_type") or "").endswith("OutOfMemoryError"):
            found.setdefault((event.server, event.rank), event)
    return found


def _failed(context: Context, event: Event, server: str | None, rank: str | None) -> Finding:
    verdict = next((known for known in context.ranks if (known.server, known.rank) == (server, rank)), None)
    lines = {line.line: line.seen for line in verdict.lines} if verdict is not None else {}
    evidence = {
        "free_bytes": lines.get("hbm.free"),
        "process_bytes": lines.get("hbm.process"),
        "rest_bytes": lines.get("hbm.rest"),
    }
    on_gpu = event.kind == "traceback"
    return Finding(
        "HBM-OVER",
        "breach",
        f"{'an allocation on the GPU failed' if on_gpu else 'the KV pool could not take a batch'}: {event.text[:120]}",
        scope="rank" if rank is not None else "server",
        server=server,
        rank=rank,
        evidence=evidence,
        sources=dict.fromkeys(("free_bytes", "process_bytes"), "measured") | {"rest_bytes": "inferred"},
        advice="lower --mem-fraction-static by 0.01 to 0.02 or --chunked-prefill-size at the next planned restart; "
        "with HiCache on, transfer staging takes HBM that the same launch without it has free"
        if on_gpu
        else "lower --max-running-requests or raise --mem-fraction-static at the next planned restart",
    )


def _rise(context: Context, rank: RankVerdict) -> float | None:
    """Bytes a second in a straight line over the window: a step that has ended is no rise."""
    limits = context.thresholds
    track = context.history.track((rank.server, rank.rank, "hbm.rest"), limits.hbm_rising_seconds)
    if not covers(track, limits.hbm_rising_seconds):
        return None
    line = trend(track.seconds, track.values)
    rising = line is not None and line.per_second > 0 and line.r2 >= limits.hbm_rising_r2
    return line.per_second if line is not None and rising else None


def _over(rank: RankVerdict, rise: float | None) -> Finding:
    line = rank.line("hbm.rest")
    process, free = rank.line("hbm.process"), rank.line("hbm.free")
    more = (line.seen or 0) - (line.planned or 0)
    left = free.seen / rise if rise and free.seen is not None else None
    return Finding(
        "HBM-OVER",
        "breach",
        f"{more / GIB:.2f} GiB more than when steady, beside weights, KV pool and graphs"
        + (f", rising by {rise * 3600 / GIB:.2f} GiB an hour" if rise else ", while requests are retracted")
        + (f": full in {left / 60:.0f} min" if left is not None else ""),
        scope="rank",
        server=rank.server,
        rank=rank.rank,
        evidence={
            "process_bytes": process.seen,
            "rest_bytes": line.seen,
            "rest_baseline_bytes": line.planned,
            "free_bytes": free.seen,
            "rise_bytes_per_hour": round(rise * 3600) if rise else None,
        },
        sources={
            "process_bytes": process.source or "measured",
            "rest_bytes": "inferred",
            "rest_baseline_bytes": "inferred",
            "free_bytes": free.source or "measured",
            "rise_bytes_per_hour": "inferred",
        },
        advice="drain this server before the GPU is full and restart it with a lower --mem-fraction-static or "
        "--chunked-prefill-size; other processes on this GPU show as HBM-ORPHAN",
    )


def _group(context: Context, rank: RankVerdict) -> str:
    plan = context.rank_plan(rank)
    return f"{plan.dp}/{plan.pp}" if plan is not None else ""


def _moved(now: dict[RankKey, int], then: dict[RankKey, int], tolerance: float) -> Iterator[Finding]:
    for key, process in now.items():
        peers_now = median(value for other, value in now.items() if other != key)
        peers_then = median(value for other, value in then.items() if other != key)
        offset, before = process - peers_now, then[key] - peers_then
        if abs(offset - before) <= tolerance:
            continue
        yield Finding(
            "HBM-SKEW",
            "warn",
            f"{offset / GIB:+.2f} GiB from the median of its peers, {before / GIB:+.2f} GiB when steady",
            scope="rank",
            server=key[0],
            rank=key[1],
            evidence={
                "process_bytes": process,
                "peers_median_bytes": round(peers_now),
                "offset_bytes": round(offset),
                "steady_offset_bytes": round(before),
            },
            sources={
                "process_bytes": "measured",
                "peers_median_bytes": "measured",
                "offset_bytes": "inferred",
                "steady_offset_bytes": "inferred",
            },
            advice="compare this rank's load with its peers' (requests, accept length) and look for another process on "
            "its GPU; the rank with least free HBM decides when all of them fail",
        )


def _foreign(context: Context, held: dict[int, int], source: str) -> Iterator[Finding]:
    processes = context.sample.processes
    if processes is None or not context.ranks:
        return
    ours = {rank.pid for rank in processes.ranks} | {gone.process.pid for gone in context.gone}
    ours |= {server.pid for server in processes.servers if server.pid is not None}
    if held.keys() <= ours:
        return
    rank_gpus = {rank.gpu for rank in context.ranks if rank.pid is not None and rank.gpu is not None}
    for rank in context.ranks:
        # NVML told a pid of another namespace, and it can only be this rank's.
        if rank.line("hbm.process").seen is not None and rank.pid not in held:
            ours |= {process.pid for gpu in _gpus(context) if gpu.index == rank.gpu for process in gpu.processes or ()}
    strangers = {
        process.pid: gpu.index
        for gpu in _gpus(context)
        if gpu.index in rank_gpus
        for process in gpu.processes or ()
        if process.pid not in ours and (process.used_bytes or 0) >= context.thresholds.foreign_hbm_bytes
    }
    if not strangers:
        return
    total = sum(held[pid] for pid in strangers)
    yield Finding(
        "HBM-ORPHAN",
        "info",
        f"{total / GIB:.2f} GiB of HBM on the ranks' GPUs are held by "
        f"{counted(len(strangers), 'process that is', 'processes that are')} no rank here "
        f"(pid {', '.join(str(pid) for pid in sorted(strangers)[:4])} as NVML tells them)",
        evidence={
            "hbm_bytes": total,
            "processes": len(strangers),
            "pids": sorted(strangers)[:16],
            "gpus": sorted(set(strangers.values())),
        },
        sources=dict.fromkeys(("hbm_bytes", "processes", "pids", "gpus"), source),
        advice="it is a second engine, MPS, or this container's own rank by its host pid: run ranktop in the host's "
        "pid namespace to tell which",
    )


def _gpus(context: Context) -> tuple[Gpu, ...]:
    return context.sample.gpus.gpus if context.sample.gpus else ()
