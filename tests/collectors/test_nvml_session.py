"""NVML's session: opened, refused, mismatched, released, forgotten, and left while it hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from collectors import nvml_session
from collectors.nvml import NvmlCollector
from collectors.nvml_session import NvmlSession, loaded_driver_version
from collectors.xid import XidCollector
from ranktop.sample import NoData, SourceError
from tests.collectors.nvml_shim import Driver, collector, read

pytestmark = pytest.mark.tools("gcc")


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


def test_no_loaded_driver(tmp_path: Path) -> None:
    assert loaded_driver_version(str(tmp_path)) is None
