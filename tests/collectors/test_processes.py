from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import procfs
from collectors.processes import ProcessesCollector, server_ids
from ranktop.sample import Processes, SourceError
from support.held import Held

TREE = Path(__file__).with_name("process_tree.py")
PORT = 1024 + 2 * (os.getpid() % 32_000)
"""Of this test process alone: readers see every server of the machine, also those of the same tests in another worker
or another checkout, and one address is one server's. The one after it is for a second server."""

LAUNCH = f"python -m sglang.launch_server --port {PORT} --api-key s3cret"
ADDRESS = f"127.0.0.1:{PORT}"


class Tree:
    """The processes of one tree by title."""

    def __init__(
        self, node: dict[str, Any], count: int, env: dict[str, str] | None = None, before: tuple[str, ...] = ()
    ) -> None:
        self.process = subprocess.Popen(
            [*before, sys.executable, str(TREE), json.dumps(node)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
        )
        assert self.process.stdout
        self.pids: dict[str, int] = {}
        for _ in range(count):
            pid, _, title = self.process.stdout.readline().strip().partition(" ")
            # In a pid namespace of their own they tell pids that are somebody else's here.
            if not before:
                self.pids[title] = int(pid)
        self._held = Held([self.pid, *self.pids.values()])

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        self._held.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture
def grow() -> Iterator[Callable[..., Tree]]:
    trees: list[Tree] = []

    def start(*arguments: Any, **options: Any) -> Tree:
        trees.append(Tree(*arguments, **options))
        return trees[-1]

    yield start
    for tree in trees:
        tree.kill()


def node(title: str | None, *children: dict[str, Any], linger: bool = False) -> dict[str, Any]:
    return {"title": title, "children": list(children), "linger": linger}


def ranks(*tags: str) -> list[dict[str, Any]]:
    return [node(f"sglang::scheduler_{tag}") for tag in tags]


def until(collector: ProcessesCollector, good: Callable[[Processes], bool]) -> Processes:
    deadline = time.monotonic() + 10
    while not good(seen := collector.read(None, 0.0)):
        assert time.monotonic() < deadline, seen
        time.sleep(0.02)
    return seen


def test_a_server_and_its_ranks_in_rank_order(grow: Callable[..., Tree]) -> None:
    env = {"RANKTOP_DEMO_STATE": "/tmp/somewhere.json", "CUDA_VISIBLE_DEVICES": "4,5", "SPT_NOENV": "1"}
    tree = grow(node(LAUNCH, *ranks("TP10", "TP2", "TP0"), node("sglang::detokenizer")), 5, env)
    seen = ProcessesCollector(only_pids=[tree.pid]).read(None, 0.0)
    (server,) = seen.servers
    assert (server.id, server.url) == (ADDRESS, f"http://{ADDRESS}")
    assert server.demo_state_path == "/tmp/somewhere.json"
    assert server.own_network is True
    assert "s3cret" not in repr(seen)
    assert [str(rank.tag) for rank in seen.ranks] == ["TP0", "TP2", "TP10"]
    rank = seen.ranks[1]
    assert rank.pid == tree.pids["sglang::scheduler_TP2"]
    assert rank.server == server.id
    assert rank.parent_pid == tree.pid
    assert rank.state == "S"
    assert rank.cuda_visible_devices == "4,5"
    assert rank.orphan is False
    assert rank.rss_anon_bytes is not None
    assert rank.rss_anon_bytes > 1 << 20
    assert rank.hugetlb_bytes == 0
    assert rank.namespace_pids == (rank.pid,)
    assert rank.memlock_limit_bytes is not None
    assert seen.boot_unix_seconds is not None
    started = seen.boot_unix_seconds + rank.start_ticks / seen.ticks_per_second
    assert abs(started - time.time()) < 60


def test_a_controller_between_server_and_ranks(grow: Callable[..., Tree]) -> None:
    tree = grow(node(LAUNCH, node("sglang::data_parallel_controller", *ranks("DP0_TP0", "DP1_TP1"))), 4)
    seen = ProcessesCollector(only_pids=[tree.pid]).read(None, 0.0)
    assert [(rank.server, str(rank.tag)) for rank in seen.ranks] == [
        (ADDRESS, "DP0 TP0"),
        (ADDRESS, "DP1 TP1"),
    ]


def test_an_engine_in_somebodys_own_program(grow: Callable[..., Tree]) -> None:
    tree = grow(node(None, *ranks("TP0")), 2)
    seen = ProcessesCollector(only_pids=[tree.pid]).read(None, 0.0)
    assert [(server.id, server.url) for server in seen.servers] == [(f"pid:{tree.pid}", None)]
    assert [rank.server for rank in seen.ranks] == [f"pid:{tree.pid}"]


def test_a_server_before_its_ranks_and_a_rank_titled_late(grow: Callable[..., Tree]) -> None:
    tree = grow(node(LAUNCH), 1)
    collector = ProcessesCollector(only_pids=[tree.pid])
    assert [server.id for server in collector.read(None, 0.0).servers] == [ADDRESS]
    late = (
        "import sys, time, setproctitle; sys.stdin.readline()\n"
        "setproctitle.setproctitle('sglang::scheduler_TP7'); print('titled', flush=True); time.sleep(60)"
    )
    everyone = ProcessesCollector()
    child = subprocess.Popen(
        [sys.executable, "-c", f"'from multiprocessing.spawn import spawn_main'\n{late}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(4):
            assert child.pid not in [rank.pid for rank in everyone.read(None, 0.0).ranks]
        assert child.stdin
        assert child.stdout
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "titled\n"
        assert child.pid in [rank.pid for rank in everyone.read(None, 0.0).ranks]
    finally:
        child.kill()
        child.communicate()


def test_a_rank_that_dies_is_gone_and_one_that_starts_is_there(grow: Callable[..., Tree]) -> None:
    tree = grow(node(LAUNCH, *ranks("TP0", "TP1")), 3)
    collector = ProcessesCollector(only_pids=[tree.pid])
    assert len(collector.read(None, 0.0).ranks) == 2
    os.kill(tree.pids["sglang::scheduler_TP1"], signal.SIGKILL)
    # The stand-in never reaps its children: what is left is a zombie, and it is shown as one.
    seen = until(collector, lambda seen: seen.ranks[1].state == "Z")
    assert seen.ranks[1].rss_anon_bytes is None
    tree.process.kill()
    tree.process.wait()
    assert until(collector, lambda seen: not seen.ranks).servers == ()
    again = grow(node(LAUNCH, *ranks("TP0")), 2)
    seen = ProcessesCollector(only_pids=[again.pid]).read(None, 0.0)
    assert [rank.pid for rank in seen.ranks] == [again.pids["sglang::scheduler_TP0"]]


def test_an_orphan_keeps_its_server_and_says_so(grow: Callable[..., Tree]) -> None:
    tree = grow(node(LAUNCH, node("sglang::scheduler_TP0", linger=True)), 2)
    collector = ProcessesCollector()
    pid = tree.pids["sglang::scheduler_TP0"]

    def mine(seen: Processes) -> Any:
        return next(rank for rank in seen.ranks if rank.pid == pid)

    chosen = ProcessesCollector(only_pids=[tree.pid])
    assert mine(chosen.read(None, 0.0)).orphan is False
    assert mine(collector.read(None, 0.0)).orphan is False
    tree.process.kill()
    tree.process.wait()
    orphan = mine(until(collector, lambda seen: mine(seen).parent_pid != tree.pid))
    assert orphan.orphan is True
    assert orphan.server == ADDRESS
    assert mine(chosen.read(None, 0.0)).orphan is True
    late = mine(ProcessesCollector().read(None, 0.0))
    assert late.orphan is True
    assert late.server == f"pid:{os.getpgid(pid)}"


def test_two_servers_and_the_choice_by_url(grow: Callable[..., Tree]) -> None:
    first = grow(node(LAUNCH, *ranks("TP0")), 2)
    grow(node(LAUNCH.replace(str(PORT), str(PORT + 1)), *ranks("TP0")), 2)
    chosen = ProcessesCollector(only_urls=[f"http://localhost:{PORT}/"]).read(None, 0.0)
    assert [server.pid for server in chosen.servers] == [first.pid]
    assert [rank.server for rank in chosen.ranks] == [ADDRESS]


@pytest.mark.tools("unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make namespaces")
def test_a_container_with_the_same_address_has_an_id_of_its_own(grow: Callable[..., Tree]) -> None:
    here = grow(node(LAUNCH, *ranks("TP0")), 2)
    grow(node(LAUNCH, *ranks("TP0")), 2, before=("unshare", "--net", "--pid", "--fork", "--kill-child"))
    seen = ProcessesCollector().read(None, 0.0)
    own, foreign = sorted(
        (server for server in seen.servers if str(PORT) in server.argv), key=lambda server: not server.own_network
    )
    assert (own.pid, own.id, own.own_network) == (here.pid, ADDRESS, True)
    assert (foreign.id, foreign.url, foreign.own_network) == (f"pid:{foreign.pid}", None, False)
    inside = next(rank for rank in seen.ranks if rank.server == foreign.id)
    assert inside.namespace_pids[0] == inside.pid
    assert len(inside.namespace_pids) == 2


class FakeMain:
    """What `server_ids` looks at."""

    def __init__(self, pid: int, namespace: str, state: str = "S", start: int = 0) -> None:
        self.pid = pid
        self.address = "127.0.0.1:30000"
        self.net_namespace = namespace
        self.stat = procfs.Stat(state, 1, pid, start)


@pytest.mark.parametrize(
    ("mains", "before", "holder"),
    [
        ([FakeMain(1, "other")], {}, 1),
        ([FakeMain(1, "own"), FakeMain(2, "other")], {}, 1),
        ([FakeMain(1, "other"), FakeMain(2, "third")], {}, None),
        ([FakeMain(1, "own", start=5), FakeMain(2, "own", start=9)], {}, 2),
        ([FakeMain(1, "own", start=5), FakeMain(2, "own", start=9)], {1: "127.0.0.1:30000"}, 1),
        ([FakeMain(1, "own", "Z", 5), FakeMain(2, "own", start=9)], {1: "127.0.0.1:30000"}, 2),
    ],
)
def test_one_address_names_one_server(mains: list[Any], before: dict[int, str], holder: int | None) -> None:
    ids = server_ids(mains, before, "own")
    for main in mains:
        assert ids[main.pid] == ("127.0.0.1:30000" if main.pid == holder else f"pid:{main.pid}")


def test_no_proc_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        ProcessesCollector(tmp_path / "proc").read(None, 0.0)


def write_process(root: Path, pid: int, cmdline: bytes, parent: int = 1, status: str = "") -> None:
    folder = root / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_bytes(cmdline.split(b"\0")[0][:15] + b"\n")
    (folder / "cmdline").write_bytes(cmdline)
    rest = " ".join(str(number) for number in range(7, 55))
    (folder / "stat").write_text(f"{pid} (a) b) S {parent} {pid} {pid} {rest}\n")
    (folder / "status").write_text(f"Name:\ta) b\nState:\tS (sleeping)\nPPid:\t{parent}\n{status}")


def test_a_fixture_tree_without_limits_or_environ(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 1700000000\n")
    write_process(tmp_path, 10, b"python3\0-m\0sglang.launch_server\0--port\x001\0")
    write_process(
        tmp_path, 11, b"sglang::scheduler_TP0\0\0\0", 10, "VmSize:\t  10 kB\nVmPin:\t  7 MB\nRssShmem: x kB\n"
    )
    (rank,) = ProcessesCollector(tmp_path).read(None, 0.0).ranks
    assert rank.server == "127.0.0.1:1"
    assert rank.vm_size_bytes == 10240
    assert (rank.vm_pin_bytes, rank.rss_shmem_bytes, rank.rss_anon_bytes) == (None, None, None)
    assert (rank.memlock_limit_bytes, rank.cuda_visible_devices, rank.mems_allowed) == (None, None, None)
    assert (rank.pid, rank.state, rank.parent_pid, rank.start_ticks, rank.orphan) == (11, "S", 10, 22, False)
    write_process(tmp_path, 12, b"sglang::scheduler_TP1\0", 10)
    collector = ProcessesCollector(tmp_path)
    assert len(collector.read(None, 0.0).ranks) == 2
    write_process(tmp_path, 13, b"sglang::scheduler_TP2\0", 10)
    assert len(collector.read(None, 0.0).ranks) == 3


def test_a_rank_is_the_same_object_until_something_of_it_moves(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("btime 1700000000\n")
    write_process(tmp_path, 10, b"python3\0-m\0sglang.launch_server\0--port\x001\0")
    for pid in (11, 12):
        write_process(tmp_path, pid, b"sglang::scheduler_TP%d\0" % (pid - 11), 10, "VmSize:\t  10 kB\n")
    collector = ProcessesCollector(tmp_path)
    first = collector.read(None, 0.0).ranks
    status = tmp_path / "12" / "status"
    status.write_text(status.read_text() + "voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t1\n")
    assert all(again is before for again, before in zip(collector.read(None, 1.0).ranks, first, strict=True))
    status.write_text(status.read_text().replace("10 kB", "12 kB").replace("S (sleeping)", "D (disk sleep)"))
    one, other = collector.read(None, 2.0).ranks
    assert one is first[0]
    assert (other.vm_size_bytes, other.state) == (12 << 10, "D")


@pytest.mark.shared
@pytest.mark.parametrize("pool", ["shanon", "memfd", "privthp", "huge2m", "pinshanon"])
def test_real_status_and_stat(shared: Path, pool: str) -> None:
    folder = shared / "fixtures" / "self-captured" / pool
    stat = procfs.parse_stat((folder / "stat").read_bytes())
    assert stat is not None
    assert stat.start_ticks > 0
    status = (folder / "status").read_bytes()
    held = {key: procfs.kib_value(status, key) for key in (b"RssAnon:", b"RssShmem:", b"HugetlbPages:", b"VmPin:")}
    pool_key = {"privthp": b"RssAnon:", "huge2m": b"HugetlbPages:"}.get(pool, b"RssShmem:")
    assert (held[pool_key] or 0) >= 256 << 20
    assert held[b"VmPin:"] == (1 << 30 if pool == "pinshanon" else 0)
    assert procfs.parse_memlock_limit((folder / "limits").read_bytes()) == 8 << 20


@given(st.binary(max_size=200))
def test_parsers_never_raise(raw: bytes) -> None:
    procfs.parse_stat(raw)
    procfs.kib_value(raw, b"VmSize:")
    procfs.parse_counters(raw)
    procfs.parse_memlock_limit(raw)
    procfs.environ_value(raw, "A")


@given(st.integers(0, 2**40), st.text("abc) (", max_size=15))
def test_stat_survives_any_name(start: int, name: str) -> None:
    fields = " ".join(["0"] * 17)
    stat = procfs.parse_stat(f"7 ({name}) D 1 {fields} {start} 0 0".encode())
    assert stat is not None
    assert (stat.state, stat.start_ticks) == ("D", start)
