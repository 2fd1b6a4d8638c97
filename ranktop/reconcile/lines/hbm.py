"""A rank's GPU memory: what NVML sees, what SGLang says it took at start, and what is left unexplained."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.plan.plan import GIB, RankPlan
from ranktop.reconcile.compare import compare, reading
from ranktop.reconcile.gpus import RankGpu
from ranktop.reconcile.reported import Reported
from ranktop.reconcile.verdict import Line, Source

_KV_TOLERANCE_BYTES = GIB // 20
"""SGLang reports GiB as a difference of free memory, rounded by the allocator."""


def hbm_lines(
    found: RankGpu | None, source: Source, plan: RankPlan | None, said: Reported, missing: str
) -> Iterator[Line]:
    """`missing` says why there is no GPU. `said` is what SGLang's metrics or server info give."""
    gpu = found.gpu if found else None
    why = gpu.detail or gpu.state if gpu and gpu.state != "ok" else missing
    yield reading("hbm.total", gpu.total_bytes if gpu else None, source=source, missing=why)
    yield reading("hbm.free", gpu.free_bytes if gpu else None, source=source, missing=why)
    process = found.process.used_bytes if found and found.process else None
    no_process = why if gpu is None else "NVML shows no process with this rank's pid on its GPU"
    yield reading("hbm.process", process, source=source, missing=no_process)
    unsaid = "SGLang has not reported it (no metrics page and no server info)"
    yield reading("hbm.weights", said.weights_bytes, source="reported", missing=unsaid, group=said.memory_is_group)
    device = plan.device if plan else None
    yield compare(
        "hbm.kv",
        device.pool_bytes - (device.scratch_bytes or 0) if device and device.pool_bytes is not None else None,
        said.kv_bytes,
        tolerance=max(_KV_TOLERANCE_BYTES, 0.005 * (said.kv_bytes or 0)),
        source="reported" if said.kv_bytes is not None else "computed",
        detail="" if said.kv_bytes is not None else unsaid,
        group=said.memory_is_group and said.kv_bytes is not None,
    )
    yield reading("hbm.graphs", said.graphs_bytes, source="reported", missing=unsaid, group=said.memory_is_group)
    for name, planned in (
        ("hbm.scratch", device.scratch_bytes if device else None),
        ("hbm.staging", device.staging_bytes if device else None),
    ):
        yield compare(name, planned, None, source="computed", detail="part of hbm.rest; nothing tells it apart")
    parts = (process, said.weights_bytes, said.kv_bytes, said.graphs_bytes)
    rest = None
    if process is not None and None not in parts:
        rest = process - sum(part or 0 for part in parts[1:])
    yield reading("hbm.rest", rest, source="inferred", missing="needs NVML's process figure and SGLang's three")
    yield reading("hbm.torch", None, source=None, missing="no public source today")
