"""Disks that are full or read-only, recordings that are damaged, a terminal that goes, little memory, lost rights."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from collectors import poller
from faults.fault import Fault, Stage, Watched
from faults.of_processes import TwoRanks
from faults.unruly import Unruly, http
from ranktop.recording.writer import Writer
from recording.node import SyntheticNode
from support.command import RANKTOP
from support.http_answers import closed_port

_MAIN_SCREEN = b"\x1b[?1049l"


def _run(*arguments: str, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(RANKTOP), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        preexec_fn=before,
        check=False,
    )


def _full_disk(stage: Stage, shows: str) -> None:
    """A limit on the size of files refuses as a full disk does (SQLITE_FULL, SQLITE_IOERR)."""
    path = stage.folder / "a.rtop"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))

    done = _run("record", "-o", str(path), "--pid", "1", "--interval", "0.2", "--duration", "9", before=limit)
    assert shows in done.stderr
    assert done.stderr.count("\n") <= 2
    assert "samples" in done.stdout
    assert "Traceback" not in done.stderr
    assert _run("export", str(path)).returncode == 0, "what was written can be read"


def _read_only(stage: Stage, shows: str) -> None:
    done = _run("record", "-o", "/proc/a.rtop", "--pid", "1", "--duration", "1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert shows in done.stderr


def _recording(folder: Path) -> bytearray:
    path = folder / "a.rtop"
    writer = Writer(str(path), {})
    for sample in SyntheticNode(ranks=8).samples(200):
        writer.append(sample)
    writer.close()
    return bytearray(path.read_bytes())


def _damaged(damage: Callable[[bytearray], bytearray], saved_seconds: int) -> Callable[[Stage, str], None]:
    """Seconds 0 to 199 of eight ranks: what is not shown is told, and --salvage shows what still holds."""

    def trial(stage: Stage, shows: str) -> None:
        path = stage.folder / "a.rtop"
        path.write_bytes(damage(_recording(stage.folder)))
        done = _run("export", str(path))
        assert done.returncode in (0, 3)
        assert shows in done.stderr
        assert "Traceback" not in done.stderr
        saved = _run("export", str(path), "--salvage")
        assert saved.returncode == 0
        assert saved.stdout.count("\n") > 8 * saved_seconds
        assert saved_seconds or "checksum does not hold" in saved.stderr

    return trial


def _flipped(data: bytearray) -> bytearray:
    """A bit in every page, as bad memory or a bad cable does it, where both copies of a schema are hit."""
    for place in range(1000, len(data), 4096):
        data[place] ^= 1 << place % 8
    return data


def _zeroed(data: bytearray) -> bytearray:
    """Every second page but the first ones, which say what the file is."""
    for begin in range(4 * 4096, len(data) - 4096, 8192):
        data[begin : begin + 4096] = bytes(4096)
    return data


@contextmanager
def _on_a_terminal(*arguments: str) -> Generator[tuple[int, int]]:
    """ranktop on a terminal of its own: (pid, our end)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(RANKTOP, ["ranktop", *arguments], os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    _size(terminal, 30, 100)
    try:
        yield pid, terminal
    finally:
        with suppress(ChildProcessError):
            # Refused where it was waited for already: its pid may be somebody else's.
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        with suppress(OSError):
            os.close(terminal)


def _size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _said(terminal: int, words: bytes, seconds: float = 20.0) -> bytes:
    """What comes until these words do."""
    heard, deadline = b"", time.monotonic() + seconds
    while words not in heard and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                heard += os.read(terminal, 65536)
            except OSError:
                break
    assert words in heard, heard[-500:]
    return heard


def _ends(pid: int, terminal: int | None = None, seconds: float = 10.0) -> int:
    """Its status. What it still says is read: a terminal that nobody reads makes it wait."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if terminal is not None and select.select([terminal], [], [], 0)[0]:
            with suppress(OSError):
                os.read(terminal, 65536)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.05)
    raise AssertionError("it goes on")


def _terminal_gone(stage: Stage, shows: str) -> None:
    with _on_a_terminal("--pid", "1") as (pid, terminal):
        _said(terminal, shows.encode())
        os.close(terminal)
        _ends(pid)


def _terminated(stage: Stage, shows: str) -> None:
    with _on_a_terminal("--pid", "1") as (pid, terminal):
        _said(terminal, shows.encode())
        os.kill(pid, signal.SIGTERM)
        _said(terminal, _MAIN_SCREEN)
        _ends(pid, terminal)


def _fleet_terminated(stage: Stage, shows: str) -> None:
    with _on_a_terminal("fleet", "--prometheus", "http://127.0.0.1:9") as (pid, terminal):
        _said(terminal, shows.encode())
        os.kill(pid, signal.SIGTERM)
        _said(terminal, _MAIN_SCREEN)
        _ends(pid, terminal)


def _resized(stage: Stage, shows: str) -> None:
    with _on_a_terminal("--pid", "1") as (pid, terminal):
        _said(terminal, b"host")
        for rows, columns in ((5, 20), (1, 1), (60, 240), (24, 80)):
            _size(terminal, rows, columns)
            time.sleep(0.3)
        _said(terminal, shows.encode())
        os.write(terminal, b"q")
        _said(terminal, _MAIN_SCREEN)
        assert _ends(pid, terminal) == 0


def _stopped(stage: Stage, shows: str) -> None:
    with _on_a_terminal("--pid", "1") as (pid, terminal):
        _said(terminal, b"host")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(pid, signal.SIGCONT)
        _size(terminal, 31, 101)
        _said(terminal, shows.encode())
        os.write(terminal, b"q")
        assert _ends(pid, terminal) == 0


def _suspended(stage: Stage, shows: str) -> None:
    with _on_a_terminal("--pid", "1") as (pid, terminal):
        _said(terminal, b"host")
        os.write(terminal, b"\x1a")
        _said(terminal, _MAIN_SCREEN)
        deadline = time.monotonic() + 10
        while " T " not in Path(f"/proc/{pid}/stat").read_text():
            assert time.monotonic() < deadline, "it does not stop"
            time.sleep(0.05)
        os.kill(pid, signal.SIGCONT)
        _said(terminal, shows.encode())
        os.write(terminal, b"q")
        assert _ends(pid, terminal) == 0


_LITTLE = 256 << 20


def _little_memory(stage: Stage, shows: str) -> None:
    """Its own data (heap and private mappings, proc(5)) may be 256 MiB: below that a cgroup of 256 MB holds it too."""
    done = _run(
        "check",
        "--pid",
        "1",
        "--window",
        "2",
        before=lambda: resource.setrlimit(resource.RLIMIT_DATA, (_LITTLE, _LITTLE)),
    )
    assert done.returncode == 3
    assert shows in done.stderr
    assert "MemoryError" not in done.stderr


_LOSING = """
import os, sys
from collectors.pools import PoolsCollector
from collectors.processes import ProcessesCollector
from faults.fault import Watched

with Watched(ProcessesCollector(only_urls=[sys.argv[1]]), PoolsCollector(), source="pools") as watched:
    watched.until(lambda one: watched.state(one).state == "ok" and len(one.mappings) == 2)
    os.seteuid(65534)
    print("lost", flush=True)
    sys.stdin.readline()
    watched.broken(sys.argv[2])
    os.seteuid(0)
    watched.until(lambda one: watched.state(one).state == "ok" and len(one.mappings) == 2)
"""


def _rights_lost(stage: Stage, shows: str) -> None:
    """The same process, another effective user: maps of root's new ranks are not for it."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to have rights that can be lost")
    tests = Path(__file__).parents[1]
    with TwoRanks(39_906) as server:
        child = subprocess.Popen(
            [sys.executable, "-c", _LOSING, "http://127.0.0.1:39906", shows],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
        )
        assert child.stdout is not None
        child.stdout.readline()
        # What was read of a rank stays; of new ones nothing can be read.
        server.process.kill()
        server.process.wait()
        server.start()
        _, said = child.communicate("\n", timeout=60)
    assert child.returncode == 0, said


def _prometheus_gone(stage: Stage, shows: str) -> None:
    empty = stage.folder / "kernel.log"
    empty.write_text("")
    url = closed_port()
    done = _run("why", "--prometheus", url, "--kernel-log", str(empty), "--since", "1m")
    assert shows in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def _prometheus_goes_and_comes(stage: Stage, shows: str) -> None:
    nothing = json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}).encode()
    with (
        Unruly(http(body=nothing, headers="Content-Type: application/json\r\n")) as server,
        _on_a_terminal("fleet", "--prometheus", server.url, "--ascii") as (pid, terminal),
    ):
        _said(terminal, b"no series of ranktop")
        server.refuse()
        _said(terminal, shows.encode(), seconds=30)
        server.listen()
        _said(terminal, b"no series of ranktop", seconds=60)
        os.write(terminal, b"q")
        assert _ends(pid, terminal) == 0


def _defect(stage: Stage, shows: str) -> None:
    """A collector of our own that fails in a way that nobody thought of, with a megabyte to say."""

    class Bad:
        name, part, server, period_seconds = "bad", "gpus", None, 0.1
        well = True

        def read(self, processes: object, now: float) -> object:
            if not self.well:
                raise ZeroDivisionError("x" * 1_000_000)
            return None

    stage.patch.setattr(poller, "_log", poller._log.getChild("quiet"))
    poller._log.propagate = False
    bad = Bad()
    with Watched(bad, source="bad") as watched:  # type: ignore[arg-type]
        watched.well()
        bad.well = False
        watched.broken(shows)
        bad.well = True
        watched.well()


FAULTS = (
    Fault("disk", "is full while a recording is written", "disk", _full_disk),
    Fault("disk", "takes no new file", "cannot be made", _read_only),
    Fault("recording", "is cut", "--salvage -o NEW.rtop` keeps every row", _damaged(lambda data: data[:-4096], 79)),
    Fault("recording", "has every second page zeroed", "--salvage -o NEW.rtop` keeps every row", _damaged(_zeroed, 0)),
    Fault(
        "recording",
        "has a flipped bit in every page",
        "--salvage -o NEW.rtop` keeps every row",
        _damaged(_flipped, 199),
    ),
    Fault("terminal", "is gone (SIGHUP)", "host", _terminal_gone),
    Fault("terminal", "ranktop is ended (SIGTERM): the screen is given back", "host", _terminated),
    Fault("terminal", "ranktop fleet is ended (SIGTERM): the screen is given back", "refused", _fleet_terminated),
    Fault("terminal", "is resized, down to one cell", "host", _resized),
    Fault("terminal", "ranktop is stopped (SIGSTOP) and goes on", "host", _stopped),
    Fault("terminal", "ranktop is suspended (Ctrl-Z) and goes on (fg)", "host", _suspended),
    Fault("memory", "ranktop may have 256 MiB of data", "no SGLang server with main process 1", _little_memory),
    Fault(
        "rights",
        "are lost while it runs, then given back",
        "permission denied (run as their user or as root)",
        _rights_lost,
    ),
    Fault("Prometheus", "goes while the fleet is shown, then is back", "is Prometheus up?", _prometheus_goes_and_comes),
    Fault("Prometheus", "is gone", "refused", _prometheus_gone),
    Fault("collector", "has a defect", "ZeroDivisionError", _defect),
)
