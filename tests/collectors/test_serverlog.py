"""A log is found, attached to near its end, followed through rotation and truncation, and turned into events."""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collectors.follow import MAX_BEHIND_BYTES, MAX_LINE_BYTES, CommandFollower, FileFollower
from collectors.serverlog import ServerLogCollector
from collectors.serverlog_attach import Backlog
from collectors.serverlog_events import MAX_EVENTS, LogAssembler
from collectors.serverlog_find import find_log, older_files
from collectors.serverlog_history import older_starts
from ranktop.sample import Event, NoData, Processes, ServerProcess, SourceError

READY = "[2026-11-29 09:02:30] The server is fired up and ready to roll!"
ARGS = "[2026-11-29 09:00:00] server_args=ServerArgs(model_path='/m', hicache_size={}, api_key='S1')"
UNIT_A = "[2026-11-29 09:02:31 TP{}] Try to allocate {} tokens."


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(line + "\n" for line in lines)


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    append(path, READY)
    return path


@pytest.fixture
def collector(log: Path) -> Iterator[ServerLogCollector]:
    collector = ServerLogCollector("a:1", path=log)
    yield collector
    collector.close()


def test_attach_then_follow(log: Path, collector: ServerLogCollector) -> None:
    assert kinds(collector.read(None, 1.0)) == ["ready"]
    assert collector.read(None, 2.0) == ()
    append(log, UNIT_A.format(3, 64))
    (event,) = collector.read(None, 3.0)
    assert (event.kind, event.rank, event.server, event.fields) == ("out_of_memory", "TP3", "a:1", {"asked_tokens": 64})


def test_a_line_without_its_end_waits(log: Path, collector: ServerLogCollector) -> None:
    collector.read(None, 1.0)
    whole = UNIT_A.format(3, 64) + "\n"
    with log.open("a") as file:
        for part in (whole[:20], whole[20:40]):
            file.write(part)
            file.flush()
            assert collector.read(None, 2.0) == ()
        file.write(whole[40:])
    assert kinds(collector.read(None, 3.0)) == ["out_of_memory"]


def test_rotation_loses_no_line(log: Path, collector: ServerLogCollector) -> None:
    collector.read(None, 1.0)
    with log.open("a") as old:
        old.write(UNIT_A.format(0, 1) + "\n")
        old.flush()
        log.rename(log.with_name("server.log.1"))
        old.write(UNIT_A.format(1, 2) + "\n")
    append(log, UNIT_A.format(2, 3))
    events = [*collector.read(None, 2.0), *collector.read(None, 3.0)]
    assert [event.rank for event in events] == ["TP0", "TP1", "TP2"]
    append(log, UNIT_A.format(3, 4))
    assert [event.rank for event in collector.read(None, 4.0)] == ["TP3"]


def test_truncation_begins_again(log: Path, collector: ServerLogCollector) -> None:
    append(log, *["filler"] * 50)
    collector.read(None, 1.0)
    log.write_text("")
    append(log, UNIT_A.format(1, 2))
    assert [event.rank for event in collector.read(None, 2.0)] == ["TP1"]


def test_nuls_of_a_copytruncate_are_no_text(log: Path, collector: ServerLogCollector) -> None:
    collector.read(None, 1.0)
    with log.open("ab") as file:
        file.write(b"\0" * 5000 + UNIT_A.format(1, 2).encode() + b"\n")
    assert [event.rank for event in collector.read(None, 2.0)] == ["TP1"]


def test_a_follower_far_behind_jumps(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100 + b"\n")
    follower = FileFollower(path, 0)
    with path.open("ab") as file:
        file.truncate(MAX_BEHIND_BYTES + 10_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    assert follower.read_lines()[-1] == b"last"
    assert follower.skipped_bytes() > MAX_BEHIND_BYTES / 2
    assert follower.skipped_bytes() == 0
    follower.close()


def test_an_endless_line_is_given_once_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a" * (MAX_LINE_BYTES + 100))
    follower = FileFollower(path, 0)
    assert [len(line) for line in follower.read_lines()] == [MAX_LINE_BYTES]
    with path.open("ab") as file:
        file.write(b"rest of it\nnext\n")
    assert follower.read_lines() == [b"next"]
    follower.close()


def test_the_last_two_starts_and_the_tail_of_a_long_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    filler = "[2026-11-29 09:01:00] nothing to see, move along please\n" * 80_000
    with path.open("w") as file:
        for size in (64, 96, 120):
            file.write(ARGS.format(size) + "\n" + UNIT_A.format(size, size) + "\n" + filler)
        file.write(READY + "\n")
    collector = ServerLogCollector("a:1", path=path)
    events: list[Event] = []
    while not events or collector._backlog is not None:
        events += collector.read(None, 1.0)
    collector.close()
    starts = [event.fields["args"]["hicache_size"] for event in events if event.kind == "server_args"]
    assert starts == [96, 120]
    assert [event.rank for event in events if event.kind == "out_of_memory"] == ["TP120"]
    assert kinds(tuple(events)).count("ready") == 1
    assert "S1" not in repr(events)


def test_a_search_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(ARGS.format(1) + "\n" + "y" * 99 + "\n" + "x" * 4_000_000 + "\n" + ARGS.format(2) + "\nend\n")
    backlog = Backlog(path)
    found: list[bytes] = []
    while not backlog.is_searched:
        found += backlog.search(0.0001)
    backlog.close()
    assert [line.decode() for line in found] == [ARGS.format(1)] or found[-1].decode() == ARGS.format(1)


def test_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    collector = ServerLogCollector("a:1", path=path)
    assert collector.read(None, 1.0) == ()
    append(path, READY)
    assert kinds(collector.read(None, 2.0)) == ["ready"]
    collector.close()


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"No such file.*--log FILE") as caught:
        ServerLogCollector("a:1", path=tmp_path / "none").read(None, 1.0)
    assert caught.value.code == "log_file"


def test_a_command_is_followed_and_ended(tmp_path: Path) -> None:
    script = f"print({READY!r}, flush=True); import time; time.sleep(60)"
    follower = CommandFollower([sys.executable, "-c", script])
    lines: list[bytes] = []
    deadline = time.monotonic() + 20
    while not lines and time.monotonic() < deadline:
        lines = follower.read_lines()
        time.sleep(0.02)
    assert lines == [READY.encode()]
    follower.close()
    assert follower._process.poll() is not None


def test_a_command_that_ended_is_asked_again_later(tmp_path: Path) -> None:
    collector = ServerLogCollector("a:1", command=f"echo '{READY}'")
    seen: list[str] = []
    deadline = time.monotonic() + 20

    def until_it_ends() -> None:
        while time.monotonic() < deadline:
            seen.extend(kinds(collector.read(None, 100.0)))
            time.sleep(0.02)

    with pytest.raises(SourceError, match="ended with status 0"):
        until_it_ends()
    assert seen == ["ready"]
    with pytest.raises(SourceError, match="ended"):
        collector.read(None, 105.0)
    assert collector._follower is None
    collector.read(None, 111.0)
    assert collector._follower is not None
    collector.close()


def test_a_command_that_is_none() -> None:
    for command in ("/no/such/program", ""):
        with pytest.raises(SourceError, match="check the command"):
            ServerLogCollector("a:1", command=command).read(None, 1.0)


TRACEBACK = """[2026-11-29 09:01:52 TP6] Scheduler hit an exception: Traceback (most recent call last):
  File "scheduler.py", line 5048, in run_scheduler_process
    scheduler = Scheduler(
[2026-11-29 09:01:52 TP7] The other rank says something.
    raise ValueError(
ValueError: Not enough host memory available. Requesting 120.00 GB but only have 115.10 GB free. Please reduce.
[2026-11-29 09:01:53 TP0] Try to allocate 5 tokens."""


def test_a_traceback_keeps_its_rank_through_other_lines() -> None:
    assembler = LogAssembler("a:1")
    assembler.feed(TRACEBACK.splitlines(), 0.0)
    failed, traceback, other = assembler.take()
    assert (failed.kind, failed.rank, failed.fields["asked_gb"]) == ("host_pool_failed", "TP6", 120.0)
    assert (traceback.kind, traceback.rank) == ("traceback", "TP6")
    assert (traceback.fields["error_type"], traceback.fields["process"]) == ("ValueError", "Scheduler")
    assert len(traceback.fields["lines"]) == 4
    assert (other.kind, other.rank) == ("out_of_memory", "TP0")


def test_a_traceback_without_an_end_is_told_when_the_next_begins() -> None:
    head = TRACEBACK.splitlines()[0]
    assembler = LogAssembler("a:1")
    assembler.feed([head, "  File x", head.replace("TP6", "TP5"), "  File y", "KeyError: 'z'"], 0.0)
    first, second = assembler.take()
    assert (first.rank, first.fields["error_type"]) == ("TP6", None)
    assert (second.rank, second.fields["error_type"]) == ("TP5", "KeyError")


def test_partial_lines_of_a_container_are_joined() -> None:
    assembler = LogAssembler("a:1")
    whole = UNIT_A.format(3, 64)
    assembler.feed(
        [
            f"2026-11-29T07:00:00.5Z stdout P {whole[:30]}",
            f"2026-11-29T07:00:00.5Z stdout P {whole[30:40]}",
            f"2026-11-29T07:00:00.5Z stdout F {whole[40:]}",
        ],
        0.0,
    )
    (event,) = assembler.take()
    assert (event.rank, event.at_unix_seconds) == ("TP3", datetime(2026, 11, 29, 7, 0, 0, 500_000, UTC).timestamp())


def test_partial_lines_of_two_streams_are_not_mixed() -> None:
    assembler = LogAssembler("a:1")
    out, err = UNIT_A.format(3, 64), UNIT_A.format(4, 65)
    assembler.feed(
        [
            f"2026-11-29T07:00:00Z stdout P {out[:30]}",
            f"2026-11-29T07:00:00Z stderr P {err[:30]}",
            f"2026-11-29T07:00:00Z stdout F {out[30:]}",
            f"2026-11-29T07:00:00Z stderr F {err[30:]}",
        ],
        0.0,
    )
    assert [event.rank for event in assembler.take()] == ["TP3", "TP4"]


def test_the_second_line_of_a_record_is_of_the_same_rank() -> None:
    assembler = LogAssembler("a:1")
    assembler.feed(
        [
            "[2026-11-29 09:02:31 TP3] Prefill out of memory. Try to lower your batch size.",
            "Try to allocate 8192 tokens.",
            "[2026-11-29 09:02:32 TP5] Attach HiCache storage backend failed with exception.",
            "Traceback (most recent call last):",
            "  File x",
            "KeyError: 'z'",
            "W20250516 09:00:52.240088 45697 topology.cpp:55] No RDMA devices found, check your device installation",
        ],
        0.0,
    )
    assert [(event.kind, event.rank) for event in assembler.take()] == [
        ("out_of_memory", "TP3"),
        ("out_of_memory", "TP3"),
        ("traceback", "TP5"),
        ("transport", None),
    ]


def test_a_chained_exception_is_one_traceback() -> None:
    assembler = LogAssembler("a:1")
    text = """[2026-11-29 09:02:31 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File a
KeyError: 'z'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File b
RuntimeError: cudaHostRegister failed (rc=1, invalid argument) for ptr=0x1 size=5"""
    assembler.feed(text.splitlines(), 0.0)
    pin, traceback = assembler.take()
    assert (pin.kind, pin.rank) == ("pin_failed", "TP3")
    assert (traceback.fields["error_type"], len(traceback.fields["lines"])) == ("RuntimeError", 6)


@pytest.mark.parametrize("hours", [-8, 0, 5.75])
def test_the_zone_comes_from_when_the_file_was_written(hours: float) -> None:
    written = datetime(2026, 11, 29, 9, 2, 32, 300_000, UTC).timestamp() - hours * 3600
    assembler = LogAssembler("a:1")
    assembler.set_zone(UNIT_A.format(0, 1), written)
    assembler.feed([UNIT_A.format(0, 1)], 0.0)
    (event,) = assembler.take()
    assert event.at_unix_seconds == pytest.approx(written, abs=2)


def test_an_old_copy_of_a_file_says_nothing_of_the_zone() -> None:
    assembler = LogAssembler("a:1", UTC)
    assembler.set_zone(UNIT_A.format(0, 1), 1234.0)
    assert assembler.zone is UTC
    plain = LogAssembler("a:1")
    plain.set_zone(UNIT_A.format(0, 1), datetime(2026, 11, 29, 9, 7, tzinfo=UTC).timestamp())
    assert plain.zone is None


def test_of_many_batch_lines_the_newest_is_told_with_their_number() -> None:
    assembler = LogAssembler("a:1")
    lines = [f"[2026-11-29 09:02:31 TP{n % 2}] Decode batch, #running-req: {n}, cuda graph: True" for n in range(10)]
    assembler.feed(lines, 0.0)
    events = assembler.take()
    assert [(event.rank, event.fields["running_requests"], event.fields["lines"]) for event in events] == [
        ("TP0", 8, 5),
        ("TP1", 9, 5),
    ]


def test_a_flood_is_counted_and_not_kept() -> None:
    assembler = LogAssembler("a:1")
    assembler.feed([UNIT_A.format(0, 1)] * (MAX_EVENTS + 7), 0.0)
    events = assembler.take()
    assert len(events) == MAX_EVENTS + 1
    assert events[-1].fields == {"events": 7}


def process(root: Path, stdout: Path | str | None = None, cgroup: str = "0::/\n") -> Path:
    folder = root / "proc" / "42"
    (folder / "fd").mkdir(parents=True)
    if stdout is not None:
        (folder / "fd" / "1").symlink_to(stdout)
    (folder / "cgroup").write_text(cgroup)
    return root / "proc"


UID = "8f1d0c3a-1111-2222-3333-444455556666"
CONTAINER = "ab" * 32


def test_a_log_behind_stdout(tmp_path: Path, log: Path) -> None:
    source = find_log(42, process(tmp_path, log), tmp_path)
    assert (source.kind, source.path) == ("file", log)


def test_a_log_of_a_pod(tmp_path: Path) -> None:
    folder = tmp_path / "var/log/pods" / f"ns_glm-0_{UID}" / "server"
    folder.mkdir(parents=True)
    (folder / "0.log").touch()
    os.utime(folder / "0.log", (1, 1))
    (folder / "1.log").touch()
    rotated = folder / "1.log.20261129-090000.gz"
    rotated.write_bytes(gzip.compress(b"x"))
    os.utime(rotated, (2, 2))
    cgroup = (
        f"0::/kubepods.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope\n"
    )
    source = find_log(42, process(tmp_path, "pipe:[5]", cgroup), tmp_path)
    assert source.path == folder / "1.log"
    assert source.history == (rotated, folder / "0.log")


def test_a_log_of_a_docker_container(tmp_path: Path) -> None:
    path = tmp_path / "var/lib/docker/containers" / CONTAINER / f"{CONTAINER}-json.log"
    path.parent.mkdir(parents=True)
    path.touch()
    source = find_log(42, process(tmp_path, "pipe:[5]", f"0::/system.slice/docker-{CONTAINER}.scope\n"), tmp_path)
    assert source.path == path


def test_a_log_of_a_unit(tmp_path: Path) -> None:
    source = find_log(42, process(tmp_path, "socket:[5]", "0::/system.slice/sglang@0.service\n"), tmp_path)
    assert source.kind == "command"
    assert source.argv[0] == "journalctl"
    assert source.argv[-1] == "sglang@0.service"


@pytest.mark.parametrize(
    ("stdout", "cgroup"),
    [
        ("/dev/pts/3", "0::/user.slice/user-0.slice/user@0.service/app.slice\n"),
        ("pipe:[5]", "0::/\n"),
        ("/gone.log (deleted)", ""),
        (None, f"0::/kubepods/pod{UID}/{CONTAINER}\n"),
    ],
)
def test_no_log_to_be_found(tmp_path: Path, stdout: str | None, cgroup: str) -> None:
    with pytest.raises(NoData, match="--log FILE") as caught:
        find_log(42, process(tmp_path, stdout, cgroup), tmp_path)
    assert caught.value.code == "no_log"


def test_rotated_siblings(tmp_path: Path, log: Path) -> None:
    for age, name in enumerate(("server.log.1", "server.log.2.gz")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (100 - age, 100 - age))
    (tmp_path / "other.log.1").touch()
    assert [path.name for path in older_files(log)] == ["server.log.1", "server.log.2.gz"]


def test_a_restarted_server_is_attached_to_anew(tmp_path: Path, log: Path) -> None:
    def processes(start: int) -> Processes:
        return Processes(servers=(ServerProcess(id="a:1", pid=42, start_ticks=start),))

    root = process(tmp_path, log)
    collector = ServerLogCollector("a:1", proc_root=root)
    assert kinds(collector.read(processes(1), 1.0)) == ["ready"]
    assert kinds(collector.read(processes(1), 2.0)) == []
    second = tmp_path / "second.log"
    append(second, UNIT_A.format(5, 5))
    (root / "42/fd/1").unlink()
    (root / "42/fd/1").symlink_to(second)
    assert [event.rank for event in collector.read(processes(2), 3.0)] == ["TP5"]
    collector.close()


def test_the_start_before_is_looked_for_in_older_files(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    append(path, ARGS.format(120), READY)
    (tmp_path / "server.log.1").write_text(READY + "\n")
    (tmp_path / "server.log.2.gz").write_bytes(gzip.compress(f"{ARGS.format(64)}\n{ARGS.format(96)}\n".encode()))
    (tmp_path / "server.log.3.gz").write_bytes(b"not gzip at all")
    for age, name in enumerate(("server.log.1", "server.log.2.gz", "server.log.3.gz")):
        os.utime(tmp_path / name, (100 - age, 100 - age))
    collector = ServerLogCollector("a:1", path=path)
    starts = [event for event in collector.read(None, 1.0) if event.kind == "server_args"]
    assert sorted(event.fields["args"]["hicache_size"] for event in starts) == [96, 120]
    assert [event for event in collector.read(None, 2.0) if event.kind == "server_args"] == []
    collector.close()


def test_older_starts_are_the_newest_of_them(tmp_path: Path) -> None:
    paths = [tmp_path / "new", tmp_path / "old", tmp_path / "none"]
    paths[0].write_bytes(b"server_args=3\nx\nserver_args=4")
    paths[1].write_bytes(b"server_args=1\nserver_args=2\n")
    assert older_starts(paths, 3) == [b"server_args=2", b"server_args=3", b"server_args=4"]
    assert older_starts(paths, 1) == [b"server_args=4"]
    assert older_starts([], 2) == []
