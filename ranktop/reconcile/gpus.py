"""Which GPU a rank computes on: by pid as NVML says it, else by SGLang's own index, else the only foreign process.

Source: `Scheduler` gpu_id of SGLang 0.5.18 (a logical CUDA index, after CUDA_VISIBLE_DEVICES); facts host-memory d.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ranktop.sample import Gpu, GpuProcess, Gpus, RankProcess

How = Literal["pid", "index", "only process"]


class RankGpu(NamedTuple):
    """A rank's GPU, its process entry there if NVML tells one, and how it was found."""

    gpu: Gpu
    process: GpuProcess | None
    how: How


def gpu_of_rank(rank: RankProcess | None, cuda_index: int | None, gpus: Gpus | None) -> RankGpu | None:
    """None where neither way leads to a GPU."""
    if gpus is None or not gpus.gpus:
        return None
    if rank is not None:
        for gpu in gpus.gpus:
            for process in gpu.processes or ():
                if process.pid == rank.pid:
                    return RankGpu(gpu, process, "pid")
    gpu = _by_index(cuda_index, rank.cuda_visible_devices if rank else None, gpus)
    if gpu is None:
        return None
    # In a container NVML may tell host pids. A GPU with one process that is no process here can only be this rank's.
    if rank is not None and gpu.processes is not None and len(gpu.processes) == 1:
        return RankGpu(gpu, gpu.processes[0], "only process")
    return RankGpu(gpu, None, "index")


def _by_index(cuda_index: int | None, visible: str | None, gpus: Gpus) -> Gpu | None:
    if cuda_index is None:
        return None
    by_index = {gpu.index: gpu for gpu in gpus.gpus}
    if not visible:
        return by_index.get(cuda_index)
    names = [name.strip() for name in visible.split(",") if name.strip()]
    if cuda_index >= len(names):
        # SGLANG_ONE_VISIBLE_DEVICE_PER_PROCESS leaves the rank one device.
        if len(names) != 1:
            return None
        cuda_index = 0
    name = names[cuda_index]
    if name.isdigit():
        return by_index.get(int(name))
    return next((gpu for gpu in gpus.gpus if gpu.uuid is not None and gpu.uuid.startswith(name)), None)
