"""NVML that is missing, does not fit, is lost, hangs. The real pynvml on a stand-in library (collectors/shim)."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from collectors import nvml_session
from collectors.nvml import NvmlCollector
from collectors.nvml_session import NvmlSession
from faults.fault import Fault, Stage, Watched
from ranktop.sample import Sample

_SHIM = Path(__file__).parents[1] / "collectors" / "shim" / "nvml.c"


@functools.cache
def _library() -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    library = Path(tempfile.mkdtemp(prefix="ranktop-faults-")) / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, _SHIM], check=True)
    return library


class _Driver:
    """What NVML answers is the text of a file."""

    def __init__(self, stage: Stage) -> None:
        self._state = stage.folder / "nvml"
        self.says("count 2")
        library = _library()
        stage.patch.setenv("RANKTOP_FAKE_NVML", str(self._state))
        stage.patch.setattr(nvml_session, "LIBRARY", str(library))
        stage.patch.setattr(nvml_session, "RETRY_SECONDS", 0.2)
        stage.patch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
        stage.patch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        session = NvmlSession(proc_root=stage.folder)
        self.watched = Watched(
            NvmlCollector(session, sys_root=stage.folder / "sys", deadline_seconds=0.3), source="nvml"
        )
        self.session = session

    def says(self, *lines: str) -> None:
        new = self._state.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self._state)


def _states(sample: Sample) -> list[str]:
    return [gpu.state for gpu in sample.gpus.gpus] if sample.gpus is not None else []


def _does_not_open(line: str) -> Callable[[Stage, str], None]:
    def trial(stage: Stage, shows: str) -> None:
        driver = _Driver(stage)
        driver.says(line)
        with driver.watched as watched:
            assert watched.broken(shows).gpus is None
            driver.says("count 2")
            watched.well()

    return trial


def _mismatch(stage: Stage, shows: str) -> None:
    driver = _Driver(stage)
    driver.says("init 18")
    with driver.watched as watched:
        watched.broken(shows)
        watched.finds("NVML-BROKEN", "Not seen now")


def _missing(stage: Stage, shows: str) -> None:
    driver = _Driver(stage)
    stage.patch.setattr(nvml_session, "LIBRARY", "libnvidia-ml-that-is-not-here.so.1")
    with driver.watched as watched:
        watched.broken(shows)
        watched.finds_no_more("NVML-BROKEN")


def _one_gpu(line: str, state: str, code: str) -> Callable[[Stage, str], None]:
    def trial(stage: Stage, shows: str) -> None:
        driver = _Driver(stage)
        with driver.watched as watched:
            watched.until(lambda one: _states(one) == ["ok", "ok"])
            driver.says("count 2", line)
            sample = watched.until(lambda one: _states(one) == ["ok", state])
            watched.finds(code, shows)
            watched.others_go_on(sample)
            driver.says("count 2")
            watched.until(lambda one: _states(one) == ["ok", "ok"])

    return trial


FAULTS = (
    Fault("driver", "is not there", "no NVIDIA driver here", _missing),
    Fault("driver", "is not loaded", "not loaded", _does_not_open("init 9")),
    Fault("driver", "refuses this user", "/dev/nvidiactl", _does_not_open("init 4")),
    Fault("driver", "fails without a reason", "nvmlInit", _does_not_open("init 999")),
    Fault("driver", "does not fit its library", "start ranktop again", _mismatch),
    Fault("GPU", "is lost, then back", "GPU 1", _one_gpu("1.error 15", "lost", "GPU-LOST")),
    Fault("GPU", "hangs within NVML", "GPU 1 hanging", _one_gpu("1.hang 1", "hanging", "NVML-BROKEN")),
)
