from __future__ import annotations

import pytest

from ranktop.reconcile.gpus import GpuFinder
from ranktop.sample import Gpu, GpuProcess, Gpus, MigInstance, RankProcess, RankTag

GPUS = Gpus(
    gpus=(
        Gpu(0, uuid="GPU-aaaa1111", processes=(GpuProcess(10, 5),)),
        Gpu(1, uuid="GPU-bbbb2222", processes=(GpuProcess(11, 6), GpuProcess(12, 7))),
        Gpu(2, uuid="GPU-cccc3333", mig_instances=(MigInstance(0, uuid="MIG-dddd4444"),), processes=()),
    )
)


def rank(pid: int, visible: str | None = None) -> RankProcess:
    return RankProcess(server="s", tag=RankTag(), pid=pid, start_ticks=1, state="S", cuda_visible_devices=visible)


@pytest.mark.parametrize(
    ("process", "cuda_index", "gpu", "how"),
    [
        pytest.param(rank(12), 0, 1, "pid", id="NVML tells its pid, whatever the index says"),
        pytest.param(rank(99), 0, 0, "only process", id="a pid of another namespace, alone on its GPU"),
        pytest.param(rank(99), 1, 1, "index", id="two processes: either may be it"),
        pytest.param(None, 2, 2, "index", id="no process here"),
        pytest.param(rank(99, "2,1"), 1, 1, "index", id="CUDA_VISIBLE_DEVICES by number"),
        pytest.param(rank(99, "GPU-bbbb"), 0, 1, "index", id="by the beginning of a UUID"),
        pytest.param(rank(99, "MIG-dddd4444"), 0, 2, "index", id="by the UUID of a MIG device"),
        pytest.param(rank(99, "1"), 7, 1, "index", id="one device a process: the index is of all of them"),
    ],
)
def test_which_gpu_is_a_ranks(process: RankProcess | None, cuda_index: int, gpu: int, how: str) -> None:
    found = GpuFinder(GPUS).of_rank(process, cuda_index)
    assert found is not None
    assert (found.gpu.index, found.how) == (gpu, how)


@pytest.mark.parametrize(
    ("process", "cuda_index"),
    [(rank(99), None), (rank(99), 9), (rank(99, "1,2"), 5), (rank(99, "GPU-eeee"), 0)],
)
def test_no_gpu_is_guessed(process: RankProcess, cuda_index: int | None) -> None:
    assert GpuFinder(GPUS).of_rank(process, cuda_index) is None


def test_without_nvml_there_is_none() -> None:
    assert GpuFinder(None).of_rank(rank(10), 0) is None
