"""Run as a program on a machine with a GPU: what ranktop says of a real driver, a real pin and a real copy.

    python tests/gpu/check_gpu.py

Needs Python, msgspec and nvidia-ml-py, no network and no CUDA toolkit; takes less than a minute. Prints one line a
check and ends with 1 when one of them failed. Where a driver may answer either way it prints what this one did.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from collectors import procfs
from collectors.hostmem import HostMemCollector
from collectors.nvml import NvmlCollector
from collectors.placement import PlacementCollector
from collectors.pools import PoolsCollector
from collectors.xid import XidCollector
from ranktop.sample import Gpu, NoData, Processes, RankProcess, RankTag, SourceError

POOL_BYTES = (2 << 30) + 4096 * 5
DEVICE_BYTES = 1 << 30
COPIES = 40
failed: list[str] = []


def main() -> int:
    nvml = NvmlCollector()
    gpus = nvml.read(None, time.time())
    print(f"driver {gpus.driver_version}, {len(gpus.gpus)} GPUs")
    for gpu in gpus.gpus:
        place = f"{gpu.pci_bus_id} node {gpu.numa_node}"
        print(f"  {gpu.index} {gpu.name} {place} {gpu.state} {gpu.detail or '(nothing missing)'}")
    gpu = gpus.gpus[0]
    expect("GPU 0 is ok", gpu.state == "ok")
    parts = (gpu.reserved_bytes or 0) + (gpu.used_bytes or 0) + (gpu.free_bytes or 0)
    expect("total is reserved + used + free", gpu.total_bytes == parts, f"{gpu.total_bytes} and {parts}")
    cost(nvml)
    pins = pinned_pages()
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("cuda_pool.py"), str(POOL_BYTES), str(DEVICE_BYTES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdin
        assert process.stdout
        pool = json.loads(process.stdout.readline())
        on_the_host(pool["pid"], pool["address"], pins)
        before = nvml.read(None, time.time()).gpus[0]
        on_the_gpu(before, pool["pid"])
        process.stdin.write(f"{COPIES}\n")
        process.stdin.flush()
        process.stdout.readline()
        counted(before, nvml.read(None, time.time()).gpus[0])
    finally:
        process.communicate()
    let_go(nvml)
    print(f"{len(failed)} failed" + (f": {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def expect(what: str, holds: bool, seen: str = "") -> None:
    print(f"{'ok    ' if holds else 'FAILED'} {what}{f' ({seen})' if seen else ''}")
    if not holds:
        failed.append(what)


def cost(nvml: NvmlCollector) -> None:
    """What one reading takes, in wall time and in this process's CPU time."""
    walls: list[float] = []
    cpu = time.process_time()
    for _ in range(20):
        started = time.perf_counter()
        nvml.read(None, time.time())
        walls.append(time.perf_counter() - started)
    cpu = (time.process_time() - cpu) / 20
    expect("one reading takes less than 100 ms", max(walls[1:]) < 0.1)
    print(f"       one reading: median {sorted(walls)[10] * 1e3:.1f} ms, CPU {cpu * 1e3:.1f} ms")


def pinned_pages() -> int | None:
    host = HostMemCollector().read(None, 0.0)
    if host.foll_pin_acquired_pages is None or host.foll_pin_released_pages is None:
        return None
    return host.foll_pin_acquired_pages - host.foll_pin_released_pages


def on_the_host(pid: int, address: int, pins: int | None) -> None:
    """The pool as the kernel shows it, and whether its pins count."""
    status = procfs.read_file(f"/proc/{pid}/status")
    stat = procfs.parse_stat(procfs.read_file(f"/proc/{pid}/stat"))
    assert stat is not None
    rank = RankProcess(
        "gpu", RankTag(), pid, stat.start_ticks, stat.state, rss_shmem_bytes=procfs.kib_value(status, b"RssShmem:")
    )
    seen = Processes(ranks=(rank,))
    pools = PoolsCollector()
    found = [mapping for mapping in pools.read(seen, 0.0)[pid] if mapping.start_address == address]
    expect("the pool is one mapping of its exact size", [m.size_bytes for m in found] == [POOL_BYTES])
    expect("it is resident", [m.resident for m in found] == [True])
    locked = {key: procfs.kib_value(status, key) for key in (b"VmLck:", b"VmPin:")}
    expect("VmLck and VmPin know nothing of the pin", set(locked.values()) == {0}, str(locked))
    after = pinned_pages()
    if pins is None or after is None:
        print("       this kernel does not count pins")
    else:
        share = (after - pins) * 4096 / POOL_BYTES
        print(f"       nr_foll_pin rose by {share:.3f} of the pool (1: this driver's pins count, 0: they do not)")
        expect("pins count whole or not at all", share < 0.01 or 0.99 < share < 1.5)
    placement = PlacementCollector(lambda: pools.latest).read(seen, time.time())[pid]
    sampled = next(one for one in placement if one.start_address == address)
    expect("all sampled pages are present", sampled.absent_pages == 0, str(sampled.pages_by_node))


def on_the_gpu(gpu: Gpu, pid: int) -> None:
    """The process and its memory."""
    expect("NVML tells processes", gpu.processes is not None)
    mine = [process for process in gpu.processes or () if process.pid == pid]
    if not mine:
        print(
            f"       pid {pid} is not among {[process.pid for process in gpu.processes or ()]}: another pid namespace?"
        )
        return
    used = mine[0].used_bytes
    expect("its memory holds what it allocated", used is not None and used >= DEVICE_BYTES, f"{used} bytes")


def counted(before: Gpu, after: Gpu) -> None:
    """Whether the PCIe counter saw the copies."""
    if before.pcie_rx_bytes is None or after.pcie_rx_bytes is None:
        print(f"       no PCIe counters: {after.detail}")
        return
    moved = (after.pcie_rx_bytes - before.pcie_rx_bytes) / (COPIES * DEVICE_BYTES)
    expect("the PCIe counter saw the copies once", 0.95 < moved < 1.3, f"{moved:.3f} of what was copied")


def let_go(nvml: NvmlCollector) -> None:
    """After a release no file of the driver is open in this process."""
    xids = XidCollector(nvml.session)
    try:
        xids.read(None, 0.0)
        time.sleep(0.2)
        xids.read(None, 0.0)
        print("       XID events can be waited for")
    except (NoData, SourceError) as reason:
        print(f"       XID events: {reason}")
    nvml.session.release()
    try:
        nvml.read(None, time.time())
    except NoData:
        expect("nothing of the driver is open", not any("/dev/nvidia" in path for path in open_files()))
    else:
        expect("the session is let go", False)


def open_files() -> list[str]:
    paths: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            paths.append(os.readlink(f"/proc/self/fd/{name}"))
    return paths


if __name__ == "__main__":
    sys.exit(main())
