"""Writes the state file that any ranktop reads instead of NVML, /proc/meminfo and /sys: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ranktop.sample.demo_state import DemoState


def write_state(path: Path, state: DemoState) -> None:
    """Replace the file in one step, readable by its owner alone."""
    beside = path.with_name(f"{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(state))
    beside.replace(path)


def resident_shmem_bytes(pid: int) -> int:
    """RssShmem of `/proc/PID/status` (proc(5)); 0 when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    for line in text.splitlines():
        if line.startswith("RssShmem:"):
            return int(line.split()[1]) * 1024
    return 0
