"""Runs `ranktop` as users do: the console script of this environment, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RANKTOP = Path(sys.executable).with_name("ranktop")


def ranktop(*arguments: str, timeout_seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """The finished process; output as text."""
    return subprocess.run(
        [str(RANKTOP), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        stdin=subprocess.DEVNULL,
        check=False,
    )
