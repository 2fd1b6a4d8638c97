from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest


def has_gpu() -> bool:
    try:
        count = ctypes.c_int()
        cuda = ctypes.CDLL("libcuda.so.1")
        return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except OSError:
        return False


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="needs a real NVIDIA GPU")
def test_a_real_gpu() -> None:
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("check_gpu.py")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
