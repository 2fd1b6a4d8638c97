"""A rank's GPU memory: what NVML sees, what SGLang says it took at start, and what is left unexplained."""

from __future__ import annotations

import functools
from typing import NamedTuple

from ranktop.plan.plan import GIB, RankPlan
from ranktop.reconcile.compare import compare, reading
from ranktop.reconcile.gpus import RankGpu
from ranktop.reconcile.logged_hbm import LoggedHbm
from ranktop.reconcile.reported import Reported
from ranktop.reconcile.verdict import Line, Source

_KV_TOLERANCE_BYTES = GIB // 20
"""SGLang reports GiB as a difference of free memory, rounded by the allocator."""

_UNSAID = "SGLang has not told it (no metrics page, no server info, no log line of this rank)"


class GpuMemory(NamedTuple):
    """What NVML says of a rank's memory, and why where it does not."""

    total_bytes: int | None
    free_bytes: int | None
    process_bytes: int | None
    missing: str
    missing_process: str


def gpu_memory(found: RankGpu | None, missing: str) -> GpuMemory:
    """`missing` says why there is no GPU."""
    if found is None:
        return GpuMemory(None, None, None, missing, missing)
    gpu = found.gpu
    return GpuMemory(
        gpu.total_bytes,
        gpu.free_bytes,
        found.process.used_bytes if found.process else None,
        missing if gpu.state == "ok" else gpu.detail or gpu.state,
        "NVML shows no process with this rank's pid on its GPU",
    )


class ToldMemory(NamedTuple):
    """What plan, SGLang and its log say of a rank's memory: made of what changes seldom."""

    weights: Line
    kv: Line
    graphs: Line
    scratch: Line
    staging: Line
    bytes: int | None
    """Weights, KV pool and graphs; None while one of them is not told."""


class HbmLines(NamedTuple):
    """All lines about one rank's GPU memory, in their order."""

    total: Line
    free: Line
    process: Line
    weights: Line
    kv: Line
    graphs: Line
    scratch: Line
    staging: Line
    rest: Line
    torch: Line


_TORCH = reading("hbm.torch", None, source=None, missing="no public source today")


def told_memory(plan: RankPlan | None, said: Reported, logged: LoggedHbm | None = None) -> ToldMemory:
    """`said` is what SGLang's metrics or server info give, `logged` its log."""
    logged = logged or LoggedHbm()
    weights = _told(said.weights_bytes, logged.weights_bytes, said.memory_is_group)
    kv = _told(said.kv_bytes, logged.kv_bytes, said.memory_is_group)
    graphs = _told(said.graphs_bytes, logged.graphs_bytes, said.memory_is_group)
    device = plan.device if plan else None
    pool = device.pool_bytes if device else None
    scratch, staging = (device.scratch_bytes, device.staging_bytes) if device else (None, None)
    return _told_lines(weights, kv, graphs, None if pool is None else pool - (scratch or 0), scratch, staging)


@functools.lru_cache(maxsize=1024)
def _told_lines(
    weights: _Told,
    kv: _Told,
    graphs: _Told,
    pool_bytes: int | None,
    scratch_bytes: int | None,
    staging_bytes: int | None,
) -> ToldMemory:
    """The last three are planned. All of it stands while a server lives, and is much the same of all its ranks."""
    parts = (weights.size_bytes, kv.size_bytes, graphs.size_bytes)
    return ToldMemory(
        reading("hbm.weights", weights.size_bytes, source=weights.source, missing=_UNSAID, group=weights.group),
        compare(
            "hbm.kv",
            pool_bytes,
            kv.size_bytes,
            tolerance=max(_KV_TOLERANCE_BYTES, 0.005 * (kv.size_bytes or 0)),
            source=kv.source if kv.size_bytes is not None else "computed",
            detail="" if kv.size_bytes is not None else _UNSAID,
            group=kv.group,
        ),
        reading("hbm.graphs", graphs.size_bytes, source=graphs.source, missing=_UNSAID, group=graphs.group),
        _untold("hbm.scratch", scratch_bytes),
        _untold("hbm.staging", staging_bytes),
        None if None in parts else sum(part or 0 for part in parts),
    )


def hbm_lines(memory: GpuMemory, source: Source, told: ToldMemory) -> HbmLines:
    """What NVML sees beside what is told."""
    process = memory.process_bytes
    rest = process - told.bytes if process is not None and told.bytes is not None else None
    return HbmLines(
        _total(memory.total_bytes, source, memory.missing),
        reading("hbm.free", memory.free_bytes, source=source, missing=memory.missing),
        reading("hbm.process", process, source=source, missing=memory.missing_process),
        *told[:5],
        reading("hbm.rest", rest, source="inferred", missing="needs NVML's process figure and SGLang's three"),
        _TORCH,
    )


@functools.lru_cache(maxsize=64)
def _total(total_bytes: int | None, source: Source, missing: str) -> Line:
    """The same for all GPUs of a node, and all day."""
    return reading("hbm.total", total_bytes, source=source, missing=missing)


def _untold(name: str, planned: int | None) -> Line:
    return compare(name, planned, None, source="computed", detail="part of hbm.rest; nothing tells it apart")


class _Told(NamedTuple):
    size_bytes: int | None
    source: Source | None
    group: bool


def _told(reported: int | None, logged: int | None, is_group: bool) -> _Told:
    """The rank's own report, else its own log, else what its group reports."""
    if logged is not None and (reported is None or is_group):
        return _Told(logged, "logged", False)
    return _Told(reported, "reported" if reported is not None else None, is_group and reported is not None)
