"""A rank's GPU memory: what NVML sees, what SGLang says it took at start, and what is left unexplained."""

from __future__ import annotations

from collections.abc import Iterator
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


def hbm_lines(
    memory: GpuMemory, source: Source, plan: RankPlan | None, said: Reported, logged: LoggedHbm | None = None
) -> tuple[Line, ...]:
    """`said` is what SGLang's metrics or server info give, `logged` its log."""
    return tuple(_lines(memory, source, plan, said, logged))


def _lines(
    memory: GpuMemory, source: Source, plan: RankPlan | None, said: Reported, logged: LoggedHbm | None
) -> Iterator[Line]:
    process = memory.process_bytes
    yield reading("hbm.total", memory.total_bytes, source=source, missing=memory.missing)
    yield reading("hbm.free", memory.free_bytes, source=source, missing=memory.missing)
    yield reading("hbm.process", process, source=source, missing=memory.missing_process)
    logged = logged or LoggedHbm()
    weights = _told(said.weights_bytes, logged.weights_bytes, said.memory_is_group)
    kv = _told(said.kv_bytes, logged.kv_bytes, said.memory_is_group)
    graphs = _told(said.graphs_bytes, logged.graphs_bytes, said.memory_is_group)
    yield reading("hbm.weights", weights.size_bytes, source=weights.source, missing=_UNSAID, group=weights.group)
    device = plan.device if plan else None
    yield compare(
        "hbm.kv",
        device.pool_bytes - (device.scratch_bytes or 0) if device and device.pool_bytes is not None else None,
        kv.size_bytes,
        tolerance=max(_KV_TOLERANCE_BYTES, 0.005 * (kv.size_bytes or 0)),
        source=kv.source if kv.size_bytes is not None else "computed",
        detail="" if kv.size_bytes is not None else _UNSAID,
        group=kv.group,
    )
    yield reading("hbm.graphs", graphs.size_bytes, source=graphs.source, missing=_UNSAID, group=graphs.group)
    for name, planned in (
        ("hbm.scratch", device.scratch_bytes if device else None),
        ("hbm.staging", device.staging_bytes if device else None),
    ):
        yield compare(name, planned, None, source="computed", detail="part of hbm.rest; nothing tells it apart")
    parts = (process, weights.size_bytes, kv.size_bytes, graphs.size_bytes)
    rest = None
    if process is not None and None not in parts:
        rest = process - sum(part or 0 for part in parts[1:])
    yield reading("hbm.rest", rest, source="inferred", missing="needs NVML's process figure and SGLang's three")
    yield reading("hbm.torch", None, source=None, missing="no public source today")


class _Told(NamedTuple):
    size_bytes: int | None
    source: Source | None
    group: bool


def _told(reported: int | None, logged: int | None, is_group: bool) -> _Told:
    """The rank's own report, else its own log, else what its group reports."""
    if logged is not None and (reported is None or is_group):
        return _Told(logged, "logged", False)
    return _Told(reported, "reported" if reported is not None else None, is_group and reported is not None)
