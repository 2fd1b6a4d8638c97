from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collectors.kernellog import KernelLogCollector
from collectors.simulated import DemoStates, OrSimulated, refusal
from collectors.simulated_kernel import KernelLogOrSimulated
from ranktop.sample import (
    Gpu,
    Gpus,
    Host,
    NoData,
    NumaNode,
    Placement,
    Processes,
    RankProcess,
    RankTag,
    ServerProcess,
    SourceError,
)
from ranktop.sample.demo_state import MAX_BYTES, DemoState

STATE = DemoState(
    at_unix_seconds=100.0,
    scenario="healthy",
    host=Host(source="measured", total_bytes=7),
    numa=(NumaNode(0), NumaNode(1)),
    gpus=Gpus(gpus=(Gpu(0, total_bytes=5),)),
    placements={11: (Placement(11, 0, 256, ((0, 256),)),)},
)


class Real:
    """The machine's own collector."""

    name = "hostmem"
    part = "host"
    server = None
    period_seconds = 1.0

    def read(self, processes: Processes | None, now: float) -> Any:
        return "measured"


def server(path: Path | None) -> ServerProcess:
    return ServerProcess("127.0.0.1:1", os.getpid(), 1, demo_state_path=str(path) if path else None)


def written(path: Path, content: bytes | None = None, mode: int = 0o600) -> Path:
    path.write_bytes(content if content is not None else msgspec.json.encode(STATE))
    path.chmod(mode)
    return path


def test_every_part_is_simulated_whatever_the_file_says(tmp_path: Path) -> None:
    state = DemoStates().read(server(written(tmp_path / "state.json")))
    assert state.host == Host(source="simulated", total_bytes=7)
    assert {node.source for node in state.numa} == {"simulated"}
    assert state.gpus.source == "simulated"
    assert state.placements[11][0].source == "simulated"


def test_a_new_content_is_read_and_an_old_one_is_not_decoded_again(tmp_path: Path) -> None:
    states, path = DemoStates(), written(tmp_path / "state.json")
    first = states.read(server(path))
    assert states.read(server(path)) is first
    new = written(tmp_path / "new", msgspec.json.encode(msgspec.structs.replace(STATE, scenario="rank-dies")))
    new.replace(path)
    assert states.read(server(path)).scenario == "rank-dies"


@pytest.mark.parametrize(
    ("servers", "value"),
    [([True], 7), ([], "measured"), ([False], "measured"), ([True, False], "measured"), ([True, True], 7)],
)
def test_the_real_machine_wins_unless_all_servers_are_stand_ins(
    tmp_path: Path, servers: list[bool], value: object
) -> None:
    path = written(tmp_path / "state.json")
    collector = OrSimulated(Real(), lambda state: state.host.total_bytes, DemoStates())
    seen = Processes(servers=tuple(server(path if is_demo else None) for is_demo in servers))
    assert collector.read(seen, 101.0) == value
    assert (collector.name, collector.part, collector.period_seconds) == ("hostmem", "host", 1.0)


def test_ranks_of_two_stand_ins_have_their_placements(tmp_path: Path) -> None:
    other = msgspec.structs.replace(STATE, placements={22: (Placement(22, 0, 256, ((1, 256),)),)})
    paths = [written(tmp_path / "a"), written(tmp_path / "b", msgspec.json.encode(other))]
    real = Real()
    real.part = "placements"
    collector = OrSimulated(real, lambda state: state.placements, DemoStates())
    assert set(collector.read(Processes(servers=tuple(map(server, paths))), 101.0)) == {11, 22}


def test_before_the_processes_are_known_nothing_is_claimed() -> None:
    with pytest.raises(NoData) as caught:
        OrSimulated(Real(), lambda state: state, DemoStates()).read(None, 0.0)
    assert caught.value.code == "waiting"


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0o620, "others may write"),
        (None, 0o602, "others may write"),
        (b"x" * (MAX_BYTES + 1), 0o600, "more than"),
        (b"{broken", 0o600, "made by another ranktop"),
        (b'{"at_unix_seconds": "soon"}', 0o600, "made by another ranktop"),
        (b"", 0o600, "made by another ranktop"),
    ],
)
def test_a_file_that_is_not_believed(tmp_path: Path, content: bytes | None, mode: int, says: str) -> None:
    path = written(tmp_path / "state.json", content, mode)
    with pytest.raises(SourceError, match=says):
        DemoStates().read(server(path))


def test_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "link").symlink_to(written(tmp_path / "state.json"))
    for name, says in (
        ("fifo", "no regular file"),
        ("link", "Too many"),
        (".", "no regular"),
    ):
        with pytest.raises(SourceError, match=says):
            DemoStates().read(server(tmp_path / name))


def test_a_stand_in_that_has_ended_took_its_file_along(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="it has ended"):
        DemoStates().read(server(tmp_path / "none"))


def test_another_users_file(tmp_path: Path) -> None:
    seen = os.stat(written(tmp_path / "state.json"))
    assert refusal(seen, seen.st_uid) is None
    assert "belongs to user" in (refusal(seen, seen.st_uid + 1) or "")


def test_a_file_that_nobody_writes_any_more(tmp_path: Path) -> None:
    path = written(tmp_path / "state.json")
    states = DemoStates(wall=lambda: path.stat().st_mtime + 900.0)
    with pytest.raises(SourceError, match="not written for 900 s") as caught:
        states.read(server(path))
    assert caught.value.code == "stale"


def test_age_is_the_files_whatever_its_clock_says(tmp_path: Path) -> None:
    ahead = msgspec.structs.replace(STATE, at_unix_seconds=4e9)
    assert DemoStates().read(server(written(tmp_path / "state.json", msgspec.json.encode(ahead)))).host.total_bytes == 7


def test_a_server_that_is_gone(tmp_path: Path) -> None:
    gone = ServerProcess("x", 2**22 + 5, 1, demo_state_path=str(written(tmp_path / "state.json")))
    with pytest.raises(SourceError, match="is the demo still up"):
        DemoStates().read(gone)


KILL = (
    "2026-03-01T10:00:00.000Z oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/pod,task_memcg=/pod,pid=11,uid=0",
    "2026-03-01T10:00:00.000Z Memory cgroup out of memory: Killed process 11 (sglang) total-vm:8kB, anon-rss:4kB",
)


def test_kernel_lines_are_events_once_and_know_a_rank_that_is_gone(tmp_path: Path) -> None:
    path = written(tmp_path / "state.json")
    collector = KernelLogOrSimulated(KernelLogCollector("/nonexistent"), DemoStates())
    rank = RankProcess(pid=11, start_ticks=1, server="127.0.0.1:1", tag=RankTag(tp=3), state="S")
    assert collector.read(Processes(servers=(server(path),), ranks=(rank,)), 0.0) == ()
    written(path, msgspec.json.encode(msgspec.structs.replace(STATE, kernel_lines=KILL)))
    (kill,) = collector.read(Processes(servers=(server(path),)), 0.0)
    assert (kill.kind, kill.server, kill.rank, kill.fields["oom_memcg"]) == ("oom_kill", "127.0.0.1:1", "TP3", "/pod")
    assert kill.at_unix_seconds == 1772359200.0
    assert collector.read(Processes(servers=(server(path),)), 0.0) == ()


def test_with_a_real_server_the_kernels_own_log_is_read(tmp_path: Path) -> None:
    collector = KernelLogOrSimulated(KernelLogCollector(tmp_path / "kmsg"), DemoStates())
    with pytest.raises(NoData, match="is not here"):
        collector.read(Processes(servers=(server(None),)), 0.0)
