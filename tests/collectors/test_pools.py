from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import procfs
from collectors.hostmem import HostMemCollector
from collectors.pools import PoolsCollector, parse_maps, with_residency
from ranktop.sample import Mapping, Processes, RankProcess, RankTag, SourceError

PROGRAM = Path(__file__).with_name("pool_process.py")
HUGE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
SIZE = 32 << 20


def rank_of(pid: int) -> RankProcess:
    stat = procfs.parse_stat(procfs.read_file(f"/proc/{pid}/stat"))
    status = procfs.read_file(f"/proc/{pid}/status")
    assert stat is not None
    return RankProcess(
        server="s",
        tag=RankTag(),
        pid=pid,
        start_ticks=stat.start_ticks,
        state=stat.state,
        rss_anon_bytes=procfs.kib_value(status, b"RssAnon:"),
        rss_shmem_bytes=procfs.kib_value(status, b"RssShmem:"),
        hugetlb_bytes=procfs.kib_value(status, b"HugetlbPages:"),
        vm_size_bytes=procfs.kib_value(status, b"VmSize:"),
    )


@pytest.fixture
def mapped() -> Iterator[Callable[..., dict[str, Any]]]:
    started: list[subprocess.Popen[str]] = []

    def start(kind: str, size: int = SIZE) -> dict[str, Any]:
        process = subprocess.Popen([sys.executable, PROGRAM, kind, str(size)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout
        line = process.stdout.readline()
        if not line:
            pytest.skip(f"this machine cannot map a {kind} pool")
        return json.loads(line)

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


@pytest.fixture
def huge_pages() -> Iterator[None]:
    before = HUGE_PAGES.read_text() if os.access(HUGE_PAGES, os.W_OK) else None
    if before is None:
        pytest.skip("needs the right to reserve 2 MiB huge pages")
    HUGE_PAGES.write_text(str(int(before) + SIZE // (2 << 20)))
    yield
    HUGE_PAGES.write_text(before)


def pool_of(pid: int, address: int) -> Mapping:
    found = PoolsCollector().read(Processes(ranks=(rank_of(pid),)), 0.0)[pid]
    return next(mapping for mapping in found if mapping.start_address == address)


@pytest.mark.parametrize("kind", ["shared_anon", "memfd", "private_thp"])
def test_a_real_pool_has_its_exact_size(mapped: Callable[..., dict[str, Any]], kind: str) -> None:
    size = SIZE + 4096 * 7
    it = mapped(kind, size)
    pool = pool_of(it["pid"], it["address"])
    assert (pool.kind, pool.size_bytes, pool.page_size_bytes, pool.resident) == (kind, size, 4096, True)
    assert (pool.inode is None) == (kind == "private_thp")


def test_a_real_hugetlb_pool(mapped: Callable[..., dict[str, Any]], huge_pages: None) -> None:
    it = mapped("hugetlb")
    pool = pool_of(it["pid"], it["address"])
    assert (pool.kind, pool.size_bytes, pool.page_size_bytes, pool.resident) == ("hugetlb", SIZE, 2 << 20, True)


def test_a_pinned_pool_looks_like_any_and_the_host_counts_its_pages(mapped: Callable[..., dict[str, Any]]) -> None:
    def pinned_pages() -> int:
        host = HostMemCollector().read(None, 0.0)
        if host.foll_pin_acquired_pages is None or host.foll_pin_released_pages is None:
            pytest.skip("this kernel does not count pinned pages")
        return host.foll_pin_acquired_pages - host.foll_pin_released_pages

    before = pinned_pages()
    it = mapped("pinned")
    pool = pool_of(it["pid"], it["address"])
    assert (pool.kind, pool.resident) == ("shared_anon", True)
    assert pinned_pages() - before >= SIZE // 4096 * 0.9


def test_a_child_inherits_the_mapping_without_its_pages(mapped: Callable[..., dict[str, Any]]) -> None:
    it = mapped("fork")
    parent, child = pool_of(it["pid"], it["address"]), pool_of(it["child"], it["address"])
    assert (parent.inode, parent.device) == (child.inode, child.device)
    assert (parent.resident, child.resident) == (True, False)


def test_maps_are_read_again_only_when_sizes_changed(mapped: Callable[..., dict[str, Any]]) -> None:
    rank = rank_of(mapped("shared_anon", 1 << 20)["pid"])
    collector = PoolsCollector()

    def read(at: float, **changes: int) -> int:
        collector.read(Processes(ranks=(msgspec.structs.replace(rank, **changes),)), at)
        return collector.maps_reads

    assert read(0) == 1
    assert read(100) == 1
    assert read(101, vm_size_bytes=1) == 2
    assert read(103, vm_size_bytes=2) == 2
    assert read(107, vm_size_bytes=2) == 3
    assert read(108, vm_size_bytes=2, rss_shmem_bytes=1) == 4


def test_what_did_not_change_is_the_same_object(mapped: Callable[..., dict[str, Any]]) -> None:
    rank = rank_of(mapped("shared_anon", 1 << 20)["pid"])
    collector = PoolsCollector()

    def read(**changes: int) -> dict[int, tuple[Mapping, ...]]:
        return collector.read(Processes(ranks=(msgspec.structs.replace(rank, **changes),)), 0.0)

    first = read()
    assert first[rank.pid][0].resident is True
    assert read(rss_anon_bytes=5) is first
    emptied = read(rss_shmem_bytes=1)
    assert emptied is not first
    assert emptied[rank.pid][0].resident is False


def test_a_reused_pid_is_looked_at_anew(mapped: Callable[..., dict[str, Any]]) -> None:
    rank = rank_of(mapped("shared_anon", 1 << 20)["pid"])
    collector = PoolsCollector()
    collector.read(Processes(ranks=(rank,)), 0.0)
    collector.read(Processes(ranks=(msgspec.structs.replace(rank, start_ticks=1),)), 0.0)
    assert collector.maps_reads == 2
    assert collector.read(Processes(), 0.0) == {}


def test_a_dead_rank_is_absent_and_no_error() -> None:
    gone = RankProcess(server="s", tag=RankTag(), pid=2**22 + 5, start_ticks=1, state="S")
    assert PoolsCollector().read(Processes(ranks=(gone,)), 0.0) == {}


@pytest.mark.tools("setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_maps_of_another_user_are_an_error_with_its_remedy(mapped: Callable[..., dict[str, Any]]) -> None:
    rank = rank_of(mapped("shared_anon", 1 << 20)["pid"])
    pid = os.fork()
    if pid == 0:
        os.setresuid(65534, 65534, 65534)
        try:
            PoolsCollector().read(Processes(ranks=(rank,)), 0.0)
        except SourceError as error:
            os._exit(7 if error.code == "no_permission" else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


@pytest.mark.shared
@pytest.mark.parametrize(
    ("pool", "kind", "size"),
    [
        ("shanon", "shared_anon", 256 << 20),
        ("memfd", "memfd", 256 << 20),
        ("privthp", "private_thp", 256 << 20),
        ("huge2m", "hugetlb", 256 << 20),
        ("pinshanon", "shared_anon", 1 << 30),
    ],
)
def test_captured_maps(shared: Path, pool: str, kind: str, size: int) -> None:
    raw = (shared / "fixtures" / "self-captured" / pool / "maps").read_bytes()
    (mapping,) = parse_maps(raw, 1)
    assert (mapping.kind, mapping.size_bytes) == (kind, size)


def line(name: str, permissions: str = "rw-s", size: int = 1 << 20) -> bytes:
    return f"7f0000000000-{0x7F0000000000 + size:x} {permissions} 00000000 00:01 34 {name}\n".encode()


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (line("/dev/zero (deleted)"), "shared_anon"),
        (line("/dev/zero (deleted)", "rw-p"), None),
        (line("/dev/zero (deleted)", "r--s"), None),
        (line("/dev/zero (deleted)", size=4096), None),
        (line("/dev/shm/sglang_host_pool_ab (deleted)"), "memfd"),
        (line("/dev/shm/nccl-x (deleted)"), None),
        (line("/memfd:pulseaudio (deleted)"), None),
        (line("/home/sglang/file"), None),
        (b"7f0000000000-7f0002000000 rw-p 00000000 00:00 0 \n", "private_thp"),
        (b"7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n", None),
        (b"7f0000000000-7f0002000000 rw-p 00000000 00:00 0      [heap]\n", None),
        (b"7f0000000000-7f0002000000 rw-s 00000000\n", None),
        (b"not-hex rw-s 00000000 00:01 34 /dev/zero (deleted)\n", None),
    ],
)
def test_lines_of_maps(raw: bytes, kind: str | None) -> None:
    assert [mapping.kind for mapping in parse_maps(raw, 1)] == ([kind] if kind else [])


@given(st.integers(0, 1 << 30), st.integers(1 << 20, 1 << 28))
def test_residency_is_told_only_when_the_sum_proves_it(held: int, size: int) -> None:
    rank = RankProcess(server="s", tag=RankTag(), pid=1, start_ticks=1, state="S", rss_shmem_bytes=held)
    pair = tuple(Mapping(1, start, size, "shared_anon", 4096) for start in (0, size))
    for mapping in with_residency(pair, rank):
        assert (mapping.resident is True) == (held >= 2 * size)
        assert mapping.resident is not False or held < size / 2
    unknown = with_residency(pair, msgspec.structs.replace(rank, rss_shmem_bytes=None))
    assert [mapping.resident for mapping in unknown] == [None, None]


def test_maps_read_while_the_rank_gives_its_memory_back_are_not_believed(tmp_path: Path) -> None:
    """The list may end in the middle then: the kernel has taken the memory, and so no Vm line is left."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "maps").write_text("7f0000000000-7f0002000000 rw-s 00000000 00:01 99 /dev/zero (deleted)\n")
    status = tmp_path / "7" / "status"
    rank = RankProcess(server="s", tag=RankTag(), pid=7, start_ticks=1, state="R", vm_size_bytes=1 << 30)
    status.write_text("Name:\tpython3\nState:\tR (running)\n")
    assert PoolsCollector(tmp_path).read(Processes(ranks=(rank,)), 0.0) == {}
    status.write_text("Name:\tpython3\nState:\tR (running)\nVmSize:\t 1048576 kB\n")
    assert len(PoolsCollector(tmp_path).read(Processes(ranks=(rank,)), 0.0)[7]) == 1


def test_a_private_pool_that_fills_is_resident_without_its_maps_read_again(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "maps").write_bytes(b"7f0000000000-7f0002000000 rw-p 00000000 00:00 0 \n")
    rank = RankProcess(server="s", tag=RankTag(), pid=7, start_ticks=1, state="R", rss_anon_bytes=0)
    collector = PoolsCollector(tmp_path)
    told = []
    for anon_bytes in (0, 16 << 20, 32 << 20):
        processes = Processes(ranks=(msgspec.structs.replace(rank, rss_anon_bytes=anon_bytes),))
        told += [mapping.resident for mapping in collector.read(processes, 0.0)[7]]
    assert told == [False, None, True]
    assert collector.maps_reads == 1
