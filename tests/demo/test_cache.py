from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ranktop.demo.cache import Page, PageCache

PATHS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)).map(lambda two: _path(*two)), min_size=1, max_size=40)


def _path(session: int, pages: int) -> tuple[Page, ...]:
    return tuple((session, page) for page in range(pages))


def test_a_prefix_comes_back_from_the_tier_that_still_has_it() -> None:
    cache = PageCache(device_pages=4, host_pages=8)
    first = cache.admit(_path(1, 3), private=1)
    assert first is not None
    assert (first.device_hit, first.host_hit, first.backed_up) == (0, 0, 3)
    cache.release(_path(1, 3), private=1)

    again = cache.admit(_path(1, 3), private=1)
    assert again is not None
    assert (again.device_hit, again.host_hit, again.backed_up) == (3, 0, 0)
    cache.release(_path(1, 3), private=1)

    other = cache.admit(_path(2, 3), private=1)
    assert other is not None
    assert other.evicted == 3
    cache.release(_path(2, 3), private=1)

    back = cache.admit(_path(1, 3), private=1)
    assert back is not None
    assert (back.device_hit, back.host_hit, back.loaded, back.backed_up) == (0, 3, 3, 0)


def test_what_running_requests_hold_is_not_evicted() -> None:
    cache = PageCache(device_pages=4, host_pages=8)
    assert cache.admit(_path(1, 3), private=1) is not None
    assert cache.admit(_path(2, 1), private=0) is None


def test_a_declined_load_back_still_counts_the_host_hit() -> None:
    cache = PageCache(device_pages=2, host_pages=8)
    for session in (1, 2, 1):
        admission = cache.admit(_path(session, 2), private=0, load_back=False)
        cache.release(_path(session, 2), private=0)
    assert admission is not None
    assert (admission.host_hit, admission.loaded) == (2, 0)


def test_a_host_full_of_pages_that_are_on_the_device_drops() -> None:
    cache = PageCache(device_pages=4, host_pages=2)
    admission = cache.admit(_path(1, 3), private=0)
    assert admission is not None
    assert (admission.backed_up, admission.dropped) == (2, 1)


@given(PATHS)
def test_pages_are_neither_lost_nor_made(paths: list[tuple[Page, ...]]) -> None:
    cache = PageCache(device_pages=6, host_pages=9)
    written = host_evicted = 0
    for path in paths:
        before = cache.evictable + cache.locked
        admission = cache.admit(path, private=1)
        assert admission is not None
        fresh = len(path) - admission.device_hit
        assert cache.evictable + cache.locked == before + fresh + 1 - admission.evicted
        assert cache.evictable + cache.locked + cache.available == 6
        assert cache.available >= 0
        written += admission.backed_up
        host_evicted += admission.host_evicted
        assert cache.host_used == written - host_evicted <= 9
        cache.release(path, private=1)
        assert cache.locked == 0


@given(PATHS)
def test_a_prefix_is_never_evicted_before_its_end(paths: list[tuple[Page, ...]]) -> None:
    cache = PageCache(device_pages=6, host_pages=9)
    for path in paths:
        cache.admit(path, private=1)
        cache.release(path, private=1)
    reachable = [cache.match(_path(session, 4)) for session in range(5)]
    assert sum(device for device, _ in reachable) == cache.evictable
