from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.move_pages import PageNodes, sample_addresses, tally
from collectors.placement import PlacementCollector
from ranktop.sample import Mapping, NoData, SourceError, share_interval_percent

SIZE = 8 << 20


@given(st.integers(1, 1 << 20), st.integers(1, 1024), st.sampled_from([4096, 2 << 20]), st.integers(0, 99))
def test_samples_are_distinct_pages_spread_over_the_mapping(pages: int, count: int, page: int, seed: int) -> None:
    start = 0x7F0000000000
    found = sample_addresses(start, pages * page, page, count, random.Random(seed))
    assert len(found) == len(set(found)) == min(pages, count)
    assert found == sorted(found)
    assert all((address - start) % page == 0 and start <= address < start + pages * page for address in found)
    if pages > count:
        stretch = pages * page / count
        assert all(abs(address - start - index * stretch) <= stretch + page for index, address in enumerate(found))


def test_statuses_are_nodes_or_errors() -> None:
    counted = tally([0, 1, 1, 255, -errno.ENOENT, -errno.EFAULT])
    assert counted.by_node == ((0, 1), (1, 2), (255, 1))
    assert counted.absent == 2


@pytest.mark.parametrize(
    ("hits", "sampled", "low", "high"),
    [(0, 0, 0, 100), (128, 256, 43.9, 56.1), (512, 1024, 46.9, 53.1), (0, 256, 0, 1.5), (256, 256, 98.5, 100)],
)
def test_interval_of_a_share(hits: int, sampled: int, low: float, high: float) -> None:
    assert share_interval_percent(hits, sampled) == pytest.approx((low, high), abs=0.05)


@given(st.integers(1, 4096), st.data())
def test_the_share_lies_in_its_interval(sampled: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, sampled))
    low, high = share_interval_percent(hits, sampled)
    assert 0 <= low <= 100 * hits / sampled + 1e-9
    assert 100 * hits / sampled - 1e-9 <= high <= 100


@pytest.fixture
def half_touched() -> Iterator[Mapping]:
    """A shared mapping of this process whose first half has pages."""
    pool = mmap.mmap(-1, SIZE, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    pool[: SIZE // 2 : 4096] = b"x" * (SIZE // 8192)
    anchor = ctypes.c_char.from_buffer(pool)
    yield Mapping(os.getpid(), ctypes.addressof(anchor), SIZE, "shared_anon", 4096, resident=None)
    del anchor
    pool.close()


def test_real_pages(half_touched: Mapping) -> None:
    collector = PlacementCollector(lambda: {half_touched.pid: (half_touched,)})
    (placement,) = collector.read(None, 7.0)[half_touched.pid]
    assert (placement.sampled_pages, placement.absent_pages) == (256, 128)
    assert sum(pages for _, pages in placement.pages_by_node) == 128
    assert (placement.source, placement.at_unix_seconds) == ("measured", 7.0)


def test_every_page_of_a_small_range_in_its_order(half_touched: Mapping) -> None:
    addresses = [half_touched.start_address + page * 4096 for page in range(SIZE // 4096)]
    statuses = PageNodes().query(half_touched.pid, addresses)
    assert all(status >= 0 for status in statuses[:1024])
    assert all(status < 0 for status in statuses[1024:])


def test_what_is_known_to_be_absent_and_who_is_gone_is_not_asked(half_touched: Mapping) -> None:
    inherited = Mapping(half_touched.pid, half_touched.start_address, SIZE, "shared_anon", 4096, resident=False)
    gone = Mapping(2**22 + 5, 4096, SIZE, "shared_anon", 4096)
    found = PlacementCollector(lambda: {inherited.pid: (inherited,), gone.pid: (gone,)}).read(None, 0.0)
    assert found == {inherited.pid: ()}


def test_new_ranks_are_sampled_soon_and_known_ones_seldom(half_touched: Mapping) -> None:
    seen: dict[int, tuple[Mapping, ...]] = {}
    collector = PlacementCollector(lambda: seen)
    with pytest.raises(NoData):
        collector.read(None, 0.0)
    assert collector.period_seconds == 1
    seen[half_touched.pid] = (half_touched,)
    collector.read(None, 1.0)
    assert collector.period_seconds == 10
    seen[2**22 + 5] = ()
    assert collector.period_seconds == 1


def test_before_any_pool_is_seen() -> None:
    with pytest.raises(NoData) as caught:
        PlacementCollector(dict).read(None, 0.0)
    assert caught.value.code == "waiting"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_another_users_rank_is_an_error_with_its_remedy(
    half_touched: Mapping, capfd: pytest.CaptureFixture[str]
) -> None:
    pid = os.fork()
    if pid == 0:
        os.setresuid(65534, 65534, 65534)
        try:
            PlacementCollector(lambda: {half_touched.pid: (half_touched,)}).read(None, 0.0)
        except SourceError as error:
            os._exit(7 if error.code == "no_permission" else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert capfd.readouterr() == ("", "")
