"""GPUs as NVML tells them: whole, lost, without permission, of an old driver, in MIG."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from collectors.nvml_device import pci_address
from ranktop.sample import GpuProcess, SourceError
from tests.collectors.nvml_shim import MIB, Driver, collector, read

pytestmark = pytest.mark.tools("gcc")


def test_eight_gpus(driver: Callable[..., Driver], tmp_path: Path) -> None:
    it = driver()
    it.say(gpu3_used=131000, gpu3_pids="4242:130500,77:-1")
    node = tmp_path / "sys" / "bus" / "pci" / "devices" / "0000:1a:00.0"
    node.mkdir(parents=True)
    (node / "numa_node").write_text("-1\n")
    gpus = collector(tmp_path).read(None, time.time())
    assert gpus.driver_version == "590.48.01"
    assert [gpu.index for gpu in gpus.gpus] == list(range(8))
    assert [gpu.numa_node for gpu in gpus.gpus] == [None, 0, 0, 0, 1, 1, 1, 1]
    gpu = gpus.gpus[3]
    assert (gpu.state, gpu.detail) == ("ok", "")
    assert (gpu.uuid, gpu.name, gpu.pci_bus_id) == ("GPU-0000-3", "NVIDIA H200", "0000:4a:00.0")
    assert (gpu.total_bytes, gpu.used_bytes, gpu.reserved_bytes) == (143771 * MIB, 131000 * MIB, 600 * MIB)
    assert gpu.free_bytes == (143771 - 131000 - 600) * MIB
    assert gpu.processes == (GpuProcess(4242, 130500 * MIB), GpuProcess(77, None))
    assert (gpu.utilization_percent, gpu.temperature_celsius, gpu.power_watts) == (72.0, 55, 412.5)
    assert (gpu.pcie_tx_bytes, gpu.nvlink_tx_bytes) == (1000000, 1000000 * 1024)
    assert (gpu.remap_pending, gpu.remap_failed, gpu.ecc_uncorrected_count) == (False, False, 0)
    assert (gpu.clocks_event_reasons, gpu.recovery_action, gpu.mig) == (4, 1000000, False)
    assert (gpu.bar1_used_bytes, gpu.bar1_total_bytes) == (5 * MIB, 262144 * MIB)


@pytest.mark.parametrize(("code", "state"), [(15, "lost"), (16, "reset_required")])
@pytest.mark.parametrize("where", ["error", "handle"])
def test_a_lost_gpu_is_a_row_of_its_own(
    driver: Callable[..., Driver], tmp_path: Path, code: int, state: str, where: str
) -> None:
    it = driver()
    it.say(count=2, **{f"gpu1_{where}": code})
    healthy, lost = read(collector(tmp_path))
    assert healthy.state == "ok"
    assert lost.state == state
    assert "GPU 1" in lost.detail
    assert (lost.used_bytes, lost.total_bytes, lost.processes, lost.utilization_percent) == (None, None, None, None)


def test_a_gpu_that_is_lost_later_keeps_its_name_and_comes_back(driver: Callable[..., Driver], tmp_path: Path) -> None:
    it = driver()
    it.say(count=1)
    nvml = collector(tmp_path)
    assert read(nvml)[0].state == "ok"
    it.say(count=1, gpu0_error=15)
    assert (read(nvml)[0].state, read(nvml)[0].uuid) == ("lost", "GPU-0000-0")
    it.say(count=1)
    assert read(nvml)[0].state == "ok"


@pytest.mark.parametrize(
    ("call", "code", "field", "reason"),
    [
        ("processes", 4, "processes", "no_permission"),
        ("utilization", 3, "utilization_percent", "not_supported"),
        ("power", 999, "power_watts", "unknown_error"),
        ("fields", 3, "pcie_tx_bytes", "not_supported"),
        ("ecc", 3, "ecc_uncorrected_count", "not_supported"),
        ("migmode", 3, "mig", "not_supported"),
        ("field197", -1, "pcie_tx_bytes", "pcie_tx: not_supported"),
        ("fieldtype", 1, "pcie_rx_bytes", "32 bits"),
    ],
)
def test_one_call_that_fails_is_one_missing_value(
    driver: Callable[..., Driver], tmp_path: Path, call: str, code: int, field: str, reason: str
) -> None:
    it = driver()
    it.say(count=1, **{f"gpu0_{call}": code})
    (gpu,) = read(collector(tmp_path))
    assert gpu.state == "ok"
    assert getattr(gpu, field) is None
    assert reason in gpu.detail
    assert gpu.used_bytes == 1000 * MIB


def test_memory_without_permission_is_the_state_of_the_row(driver: Callable[..., Driver], tmp_path: Path) -> None:
    driver().say(count=1, gpu0_memory=4)
    (gpu,) = read(collector(tmp_path))
    assert (gpu.state, gpu.used_bytes, gpu.temperature_celsius) == ("no_permission", None, 55)


@pytest.mark.parametrize("lines", [{"gpu0_memory": 3}, {"gpu0_total": 0, "gpu0_used": 0, "gpu0_reserved": 0}])
def test_unified_memory_is_not_zero(driver: Callable[..., Driver], tmp_path: Path, lines: dict[str, int]) -> None:
    driver().say(count=1, **lines)
    (gpu,) = read(collector(tmp_path))
    assert (gpu.state, gpu.total_bytes, gpu.used_bytes) == ("ok", None, None)


def test_an_old_driver_lacks_symbols(driver: Callable[..., Driver], tmp_path: Path) -> None:
    driver("old").say(count=1, gpu0_pids="7:5")
    (gpu,) = read(collector(tmp_path))
    assert (gpu.used_bytes, gpu.reserved_bytes) == (1600 * MIB, None)
    assert gpu.processes == (GpuProcess(7, 5 * MIB),)
    assert gpu.clocks_event_reasons is None
    assert "clocks: function_not_found" in gpu.detail


def test_processes_of_another_pid_namespace_are_told_hidden(driver: Callable[..., Driver], tmp_path: Path) -> None:
    driver().say(count=2, gpu1_used=70000)
    idle, hidden = read(collector(tmp_path))
    assert (idle.processes, idle.detail) == ((), "")
    assert (hidden.processes, hidden.state) == ((), "ok")
    assert "another pid namespace" in hidden.detail


def test_mig_devices_hold_the_processes(driver: Callable[..., Driver], tmp_path: Path) -> None:
    driver().say(count=1, gpu0_mig=2, gpu0_processes=3, gpu0m0_used=9000, gpu0m1_pids="50:8000")
    (gpu,) = read(collector(tmp_path))
    assert gpu.mig is True
    assert [(one.uuid, one.gpu_instance_id, one.used_bytes) for one in gpu.mig_instances] == [
        ("MIG-0000-0m0", 7, 9000 * MIB),
        ("MIG-0000-0m1", 8, 1000 * MIB),
    ]
    assert gpu.processes == (GpuProcess(50, 8000 * MIB, 8),)


def test_a_gpu_that_hangs_costs_its_own_row(driver: Callable[..., Driver], tmp_path: Path) -> None:
    it = driver()
    it.say(count=3)
    nvml = collector(tmp_path, deadline_seconds=0.3)
    assert [gpu.state for gpu in read(nvml)] == ["ok"] * 3
    it.say(count=3, gpu1_hang=1)
    started = time.monotonic()
    first, hanging, last = read(nvml)
    assert time.monotonic() - started < 2
    assert (first.state, hanging.state, last.state) == ("ok", "hanging", "ok")
    assert (hanging.uuid, hanging.used_bytes) == ("GPU-0000-1", None)
    started = time.monotonic()
    assert read(nvml)[1].state == "hanging"
    assert time.monotonic() - started < 0.25
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("ranktop"))
    nvml.session.release()
    with pytest.raises(SourceError, match="GPU 1"):
        read(nvml)
    it.say(count=3)
    nvml.session.resume()
    deadline = time.monotonic() + 5
    while read(nvml)[1].state != "ok":
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("nvml", "sysfs"),
    [
        (b"00000000:18:00.0", "0000:18:00.0"),
        ("00000000:DC:00.0", "0000:dc:00.0"),
        (b"00010002:3B:00.0", "0002:3b:00.0"),
        ("0000:3b:00.0", "0000:3b:00.0"),
    ],
)
def test_pci_addresses(nvml: bytes | str, sysfs: str) -> None:
    assert pci_address(nvml) == sysfs
