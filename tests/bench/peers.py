"""Other terminal monitors, for the same harness on the same machine: nvitop, btop, htop, refreshing once a second."""

from __future__ import annotations

import getpass
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.bench.standin import nvml_environment

_INSTALL_SECONDS = 120


class Screen(NamedTuple):
    """How a program is started, and text that only its full screen shows. No command: it is not here."""

    name: str
    command: tuple[str, ...] | None
    painted: str
    environment: dict[str, str]


@contextmanager
def peers(folder: Path, rank_pids: Sequence[int]) -> Iterator[list[Screen]]:
    """nvitop sees GPUs of the stand-in library that these ranks use. What they write goes into `folder`."""
    with nvml_environment(folder, rank_pids) as driver:
        yield list(_screens(folder, driver, f"TP{len(rank_pids) - 1}"))


def _screens(folder: Path, driver: dict[str, str] | None, last_rank: str) -> Iterator[Screen]:
    settings = {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    nvitop = _nvitop(folder / "nvitop") if driver is not None else None
    command = (nvitop, "--interval", "1") if nvitop is not None else None
    yield Screen("nvitop", command, last_rank, settings | (driver or {}))
    (folder / "btop").mkdir()
    (folder / "btop" / "btop.conf").write_text("update_ms = 1000\n")
    yield Screen("btop", _installed("btop"), getpass.getuser(), settings)
    yield Screen("htop", _installed("htop", "-d", "10"), "F10Quit", settings)


def _installed(name: str, *arguments: str) -> tuple[str, ...] | None:
    path = shutil.which(name)
    return (path, *arguments) if path is not None else None


def _nvitop(folder: Path) -> str | None:
    """nvitop in an environment of its own, which goes with the folder. None when it cannot be had."""
    uv = shutil.which("uv")
    python = str(folder / "bin" / "python")
    make = (
        [uv, "venv", "-q", "--python", sys.executable, str(folder)]
        if uv
        else [sys.executable, "-m", "venv", str(folder)]
    )
    install = (
        [uv, "pip", "install", "-q", "--compile-bytecode", "--python", python]
        if uv
        else [python, "-m", "pip", "-q", "install"]
    )
    try:
        for command in (make, [*install, "nvitop"]):
            subprocess.run(command, check=True, capture_output=True, timeout=_INSTALL_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return str(folder / "bin" / "nvitop")
