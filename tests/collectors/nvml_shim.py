"""The real `pynvml` on a stand-in library of our own (shim/nvml.c), built here and steered through a text file."""

from __future__ import annotations

import ctypes
import subprocess
import time
from pathlib import Path
from typing import Any

import pynvml
import pytest

from collectors import nvml_session
from collectors.nvml import NvmlCollector
from collectors.nvml_session import NvmlSession
from ranktop.sample import Gpu

SHIM = Path(__file__).parent / "shim" / "nvml.c"


MIB = 1 << 20


def build(folder: Path, *flags: str) -> Path:
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", *flags, "-o", library, SHIM], check=True)
    return library


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


def collector(tmp_path: Path, **options: Any) -> NvmlCollector:
    return NvmlCollector(NvmlSession(proc_root=tmp_path), sys_root=tmp_path / "sys", **options)


def read(it: NvmlCollector) -> tuple[Gpu, ...]:
    return it.read(None, time.time()).gpus
