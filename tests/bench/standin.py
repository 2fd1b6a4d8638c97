"""The project's stand-in of libnvidia-ml.so.1, for what reads GPUs on a machine without one."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_SOURCES = (Path(__file__).parents[1] / "collectors" / "shim" / "nvml.c", Path(__file__).with_name("nvml_more.c"))
_MIB_USED = 131_200


@contextmanager
def nvml_environment(folder: Path, pids: Sequence[int]) -> Iterator[dict[str, str] | None]:
    """What a process needs to see as many GPUs as pids, each used by one of them, with numbers that move once a second
    while the block runs. None without a compiler.
    """
    if shutil.which("gcc") is None:
        yield None
        return
    library, state, ends = folder / "libnvidia-ml.so.1", folder / "nvml.txt", threading.Event()
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1", "-o", library, *_SOURCES], check=True
    )
    _say(state, pids, 0)
    mover = threading.Thread(target=_move, args=(state, pids, ends))
    mover.start()
    try:
        yield {"LD_LIBRARY_PATH": str(folder), "RANKTOP_FAKE_NVML": str(state)}
    finally:
        ends.set()
        mover.join()


def _move(state: Path, pids: Sequence[int], ends: threading.Event) -> None:
    second = 0
    while not ends.wait(1.0):
        second += 1
        _say(state, pids, second)


def _say(state: Path, pids: Sequence[int], second: int) -> None:
    lines = [f"count {len(pids)}"]
    for index, pid in enumerate(pids):
        used = _MIB_USED + (second * 37 + index * 11) % 400
        lines += [
            f"{index}.used {used}",
            f"{index}.pids {pid}:{used}",
            f"{index}.busy {50 + (second * 7 + index) % 50}",
        ]
    new = state.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n")
    new.replace(state)
