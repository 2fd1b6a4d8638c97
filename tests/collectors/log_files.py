"""Logs and the processes behind them, for tests."""

from __future__ import annotations

from pathlib import Path

from ranktop.sample import Event

READY = "[2026-11-29 09:02:30] The server is fired up and ready to roll!"


ARGS = "[2026-11-29 09:00:00] server_args=ServerArgs(model_path='/m', hicache_size={}, api_key='S1')"


UNIT_A = "[2026-11-29 09:02:31 TP{}] Try to allocate {} tokens."


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(line + "\n" for line in lines)


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


def process(root: Path, stdout: Path | str | None = None, cgroup: str = "0::/\n") -> Path:
    folder = root / "proc" / "42"
    (folder / "fd").mkdir(parents=True)
    if stdout is not None:
        (folder / "fd" / "1").symlink_to(stdout)
    (folder / "cgroup").write_text(cgroup)
    return root / "proc"
