"""The screen beside a headless demo: CPU, bytes, first paint, key, quit, memory; other monitors in the same minutes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from collectors.processes import ProcessesCollector
from ranktop.demo.launcher import DemoNode
from support.terminal import Terminal
from tests.bench.peers import Screen, peers
from tests.bench.rows import Peer, Row, of_runs
from tests.bench.terminal import Figures, measure

RANKTOP = str(Path(sys.executable).with_name("ranktop"))
RUNS = 5
SECONDS = 8.0
DOWN = b"\x1b[B"

_FIGURES: tuple[tuple[str, Callable[[Figures], float], str, float | None], ...] = (
    ("CPU", lambda run: run.cpu_per_second, "s/s", 0.045),
    ("to the terminal", lambda run: run.bytes_per_second, "B/s", 2048),
    ("first full paint", lambda run: run.first_paint_seconds, "s", 0.5),
    ("CPU until settled", lambda run: run.start_cpu_seconds, "s", None),
    ("key to paint", lambda run: run.key_milliseconds, "ms", 40),
    ("quit", lambda run: run.quit_seconds, "s", 0.35),
    ("memory", lambda run: run.rss_bytes / 2**20, "MiB", 60),
)


def rows() -> Iterator[Row]:
    """Design section 8, rows one to four; the others at 120x40. Then 64 ranks."""
    with tempfile.TemporaryDirectory() as folder, DemoNode("healthy") as node:
        node.wait_ready()
        seen = ProcessesCollector(only_pids=[node.pid]).read(None, 0.0)
        ours = Screen("ranktop", (RANKTOP, "--pid", str(node.pid)), "TP7", {})
        with peers(Path(folder), [rank.pid for rank in seen.ranks if rank.pid is not None]) as others:
            large: dict[str, list[Figures]] = {screen.name: [] for screen in (ours, *others)}
            small: list[Figures] = []
            # In turns: what else this machine does meets all of them alike.
            for _ in range(RUNS):
                for screen in (ours, *others):
                    if screen.command is not None:
                        large[screen.name].append(_run(screen, 120, 40))
                small.append(_run(ours, 80, 24))
            served = [_first_key_seconds(ours.command or ()) for _ in range(RUNS)]
    for name, figure, unit, limit in _FIGURES:
        beside = [Peer(screen.name, _median(large[screen.name], figure)) for screen in others]
        yield of_runs(f"screen 120x40: {name}", [figure(run) for run in large["ranktop"]], unit, limit).beside(*beside)
    yield of_runs("screen 120x40: a key at the first picture is served", served, "s")
    for name, figure, unit, limit in _FIGURES:
        yield of_runs(f"screen 80x24: {name}", [figure(run) for run in small], unit, limit)
    yield from _wide([run.cpu_per_second for run in large["ranktop"]])


def _wide(cpu_of_eight: Sequence[float]) -> Iterator[Row]:
    """One server of 64 ranks; `cpu_of_eight` are the runs beside eight."""
    with DemoNode("healthy:64") as node:
        node.wait_ready()
        ours = Screen("ranktop", (RANKTOP, "--pid", str(node.pid)), "TP7", {})
        runs = [_run(ours, 120, 40) for _ in range(RUNS)]
    cpu = of_runs("screen 120x40, 64 ranks: CPU", [run.cpu_per_second for run in runs], "s/s")
    yield cpu
    yield Row("screen 120x40, 64 ranks: CPU over that of 8", cpu.value / median(cpu_of_eight), "times", 2)
    yield of_runs("screen 120x40, 64 ranks: memory", [run.rss_bytes / 2**20 for run in runs], "MiB")


def _run(screen: Screen, columns: int, lines: int) -> Figures:
    assert screen.command is not None
    return measure(
        screen.command,
        screen.painted,
        columns=columns,
        rows=lines,
        settle_seconds=2.5,
        seconds=SECONDS,
        key=DOWN,
        environment=screen.environment,
    )


def _first_key_seconds(command: Sequence[str]) -> float:
    """From the start until the view is there whose key was pressed as soon as the first picture was: the picture
    stands before Textual, which serves keys, is imported."""
    terminal = Terminal(command, 120, 40)
    try:
        assert terminal.read_until("TP7", 20) is not None
        terminal.press(b"2")
        served = terminal.read_until("difference", 20)
        assert served is not None
        return served
    finally:
        terminal.kill()


def _median(found: list[Figures], figure: Callable[[Figures], float]) -> float | None:
    return of_runs("", [figure(run) for run in found], "").value if found else None
