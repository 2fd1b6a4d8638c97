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


class GpuFinder:
    """The GPUs of one sample, by what names them."""

    def __init__(self, gpus: Gpus | None) -> None:
        known = gpus.gpus if gpus is not None else ()
        self._by_index = {gpu.index: gpu for gpu in known}
        self._by_pid: dict[int, RankGpu] = {}
        for gpu in known:
            for process in gpu.processes or ():
                self._by_pid.setdefault(process.pid, RankGpu(gpu, process, "pid"))

    def of_rank(self, rank: RankProcess | None, cuda_index: int | None) -> RankGpu | None:
        """None where neither way leads to a GPU."""
        if rank is not None and rank.pid in self._by_pid:
            return self._by_pid[rank.pid]
        gpu = self._visible(cuda_index, rank.cuda_visible_devices if rank else None)
        if gpu is None:
            return None
        # In a container NVML may tell host pids. A lone process that is none here can only be this rank's.
        if rank is not None and gpu.processes is not None and len(gpu.processes) == 1:
            return RankGpu(gpu, gpu.processes[0], "only process")
        return RankGpu(gpu, None, "index")

    def _visible(self, cuda_index: int | None, visible: str | None) -> Gpu | None:
        if cuda_index is None:
            return None
        if not visible:
            return self._by_index.get(cuda_index)
        names = [name.strip() for name in visible.split(",") if name.strip()]
        if cuda_index >= len(names):
            # SGLANG_ONE_VISIBLE_DEVICE_PER_PROCESS leaves the rank one device.
            if len(names) != 1:
                return None
            cuda_index = 0
        name = names[cuda_index]
        if name.isdigit():
            return self._by_index.get(int(name))
        return next((gpu for gpu in self._by_index.values() if _has_uuid(gpu, name)), None)


def _has_uuid(gpu: Gpu, name: str) -> bool:
    """CUDA takes the beginning of a GPU's UUID, or of one of its MIG devices (CUDA C Programming Guide, appendix)."""
    return any(
        uuid is not None and uuid.startswith(name) for uuid in (gpu.uuid, *(mig.uuid for mig in gpu.mig_instances))
    )
