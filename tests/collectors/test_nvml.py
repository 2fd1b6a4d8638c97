"""The real `pynvml` on a stand-in library of our own (shim/nvml.c), built here and steered through a text file."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pynvml
import pytest

from collectors import nvml_session
from collectors.nvml import NvmlCollector
from collectors.nvml_device import pci_address
from collectors.nvml_session import NvmlSession, loaded_driver_version
from collectors.xid import XidCollector
from ranktop.sample import Gpu, GpuProcess, NoData, SourceError

pytestmark = pytest.mark.tools("gcc")
SHIM = Path(__file__).parent / "shim" / "nvml.c"
MIB = 1 << 20


def build(folder: Path, *flags: str) -> Path:
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", *flags, "-o", library, SHIM], check=True)
    return library


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        "new": build(tmp_path_factory.mktemp("new")),
        "old": build(tmp_path_factory.mktemp("old"), "-DWITHOUT_NEW"),
        "named": build(tmp_path_factory.mktemp("named"), "-Wl,-soname,libnvidia-ml.so.1"),
    }


class Driver:
    """Loads one of the libraries into pynvml and says what it answers."""

    def __init__(self, library: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = state
        self.say()
        self.library = ctypes.CDLL(str(library))
        monkeypatch.setenv("RANKTOP_FAKE_NVML", str(state))
        monkeypatch.setattr(nvml_session, "LIBRARY", str(library))
        monkeypatch.setattr(pynvml, "nvmlLib", self.library)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def say(self, **lines: object) -> None:
        """The whole state: `gpu0_used=5` is the line `0.used 5`, `gpu0m1_pids` is `0m1.pids`."""
        text = "".join(f"{key.removeprefix('gpu').replace('_', '.', 1)} {value}\n" for key, value in lines.items())
        new = self.state.with_suffix(".new")
        new.write_text(text)
        new.replace(self.state)

    @property
    def sessions(self) -> int:
        return self.library.fake_sessions()


@pytest.fixture
def driver(
    libraries: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Driver]]:
    made: list[Driver] = []

    def load(kind: str = "new") -> Driver:
        made.append(Driver(libraries[kind], tmp_path / "state", monkeypatch))
        return made[-1]

    yield load
    for one in made:
        one.say()
        while one.sessions:
            one.library.nvmlShutdown()


def collector(tmp_path: Path, **options: Any) -> NvmlCollector:
    return NvmlCollector(NvmlSession(proc_root=tmp_path), sys_root=tmp_path / "sys", **options)


def read(it: NvmlCollector) -> tuple[Gpu, ...]:
    return it.read(None, time.time()).gpus


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


@pytest.mark.parametrize(
    ("init", "kind", "code", "says"),
    [
        (9, NoData, "driver_not_loaded", "not loaded"),
        (4, SourceError, "no_permission", "/dev/nvidiactl"),
        (999, SourceError, "unknown_error", "nvmlInit"),
    ],
)
def test_nvml_that_does_not_open(
    driver: Callable[..., Driver], tmp_path: Path, init: int, kind: type[NoData], code: str, says: str
) -> None:
    it = driver()
    it.say(init=init)
    nvml = collector(tmp_path)
    with pytest.raises(kind, match=says) as caught:
        nvml.read(None, 100.0)
    assert caught.value.code == code
    it.say(count=1)
    with pytest.raises(kind):
        nvml.read(None, 110.0)
    assert len(nvml.read(None, 131.0).gpus) == 1


def test_a_mismatch_names_both_versions_and_lasts(driver: Callable[..., Driver], tmp_path: Path) -> None:
    (tmp_path / "driver" / "nvidia").mkdir(parents=True)
    (tmp_path / "driver" / "nvidia" / "version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build\nGCC version: 13\n"
    )
    it = driver()
    it.say(init=18)
    nvml = collector(tmp_path)
    with pytest.raises(SourceError, match=r"590\.48\.01.*start ranktop again") as caught:
        nvml.read(None, 0.0)
    assert caught.value.code == "version_mismatch"
    it.say()
    with pytest.raises(SourceError):
        nvml.read(None, 100000.0)


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


def test_release_closes_the_session_and_resume_opens_it(driver: Callable[..., Driver], tmp_path: Path) -> None:
    it = driver()
    it.say(count=1)
    nvml = collector(tmp_path)
    xids = XidCollector(nvml.session)
    assert read(nvml)[0].state == "ok"
    assert xids.read(None, 0.0) == ()
    assert it.sessions == 1
    nvml.session.release()
    with pytest.raises(NoData) as caught:
        read(nvml)
    assert caught.value.code == "released"
    assert it.sessions == 0
    nvml.session.resume()
    assert read(nvml)[0].state == "ok"


def test_without_holding_the_session_is_closed_after_every_reading(
    driver: Callable[..., Driver], tmp_path: Path
) -> None:
    it = driver()
    it.say(count=1)
    nvml = NvmlCollector(NvmlSession(hold=False, proc_root=tmp_path), sys_root=tmp_path)
    for _ in range(2):
        assert read(nvml)[0].state == "ok"
        assert it.sessions == 0
    assert nvml.period_seconds == 10


def test_nvml_that_forgot_its_session_is_opened_again(driver: Callable[..., Driver], tmp_path: Path) -> None:
    it = driver()
    it.say(count=1)
    nvml = collector(tmp_path)
    read(nvml)
    it.say(count=1, gpu0_error=1)
    with pytest.raises(SourceError) as caught:
        read(nvml)
    assert caught.value.code == "uninitialized"
    it.say(count=2)
    assert [gpu.state for gpu in read(nvml)] == ["ok", "ok"]


def test_xids_come_once_and_name_their_gpu(driver: Callable[..., Driver], tmp_path: Path) -> None:
    it = driver()
    it.say(count=2)
    xids = XidCollector(NvmlSession(proc_root=tmp_path), wall=lambda: 5.0)
    assert xids.read(None, 0.0) == ()
    it.say(count=2, gpu1_xid=79)
    deadline = time.monotonic() + 5
    while not (found := xids.read(None, 0.0)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (event,) = found
    assert (event.kind, event.fields, event.at_unix_seconds) == ("xid", {"xid": 79, "pci_bus_id": "0000:2a:00.0"}, 5.0)
    assert xids.read(None, 0.0) == ()
    xids._session.release()
    with pytest.raises(NoData):
        xids.read(None, 0.0)


def test_a_gpu_that_is_lost_ends_the_wait_for_xids_for_half_a_minute(
    driver: Callable[..., Driver], tmp_path: Path
) -> None:
    it = driver()
    it.say(count=1, wait=15)
    xids = XidCollector(NvmlSession(proc_root=tmp_path))
    with suppress(SourceError):
        xids.read(None, 100.0)
    assert xids._listener is not None
    xids._listener._thread.join(5)
    it.say(count=1)
    with pytest.raises(SourceError, match="XIDs still come"):
        xids.read(None, 129.0)
    assert xids.read(None, 130.0) == ()


def test_xids_that_no_gpu_tells(driver: Callable[..., Driver], tmp_path: Path) -> None:
    driver().say(count=1, gpu0_register=3)
    xids = XidCollector(NvmlSession(proc_root=tmp_path))
    with suppress(NoData):
        xids.read(None, 0.0)
    assert xids._listener is not None
    xids._listener._thread.join(5)
    with pytest.raises(NoData, match="XID"):
        xids.read(None, 0.0)


QUIT = """
import sys, time
from collectors.nvml import NvmlCollector
nvml = NvmlCollector(deadline_seconds=0.2)
states = [gpu.state for gpu in nvml.read(None, 0.0).gpus]
print(states, flush=True)
"""


def test_a_process_quits_at_once_while_nvml_hangs(libraries: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "state").write_text("count 2\n1.hang 1\n")
    env = os.environ | {
        "LD_LIBRARY_PATH": str(libraries["named"].parent),
        "RANKTOP_FAKE_NVML": str(tmp_path / "state"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run([sys.executable, "-c", QUIT], env=env, capture_output=True, text=True, timeout=20)
    assert json.loads(done.stdout.replace("'", '"')) == ["ok", "hanging"]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_lasting_refusal_does_not_grow(driver: Callable[..., Driver], tmp_path: Path) -> None:
    driver().say(init=18)
    nvml = collector(tmp_path)
    depths: list[int] = []
    for _ in range(3):
        with pytest.raises(SourceError) as caught:
            nvml.read(None, 0.0)
        depths.append(len(caught.traceback))
    assert depths[1] == depths[2]


def test_no_library_is_an_ordinary_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_session, "LIBRARY", "libnvidia-ml-that-is-not-here.so.1")
    with pytest.raises(NoData, match="no NVIDIA driver here") as caught:
        collector(tmp_path).read(None, 0.0)
    assert caught.value.code == "absent"


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


def test_no_loaded_driver(tmp_path: Path) -> None:
    assert loaded_driver_version(str(tmp_path)) is None
