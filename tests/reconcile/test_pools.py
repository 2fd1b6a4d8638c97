"""Which mapping is which planned pool: contracts.md, "Planned against seen, for host pools"."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ranktop.reconcile.pools import ExpectedPool, match_pools, round_up
from ranktop.sample import Mapping

PRIMARY = ExpectedPool("host.primary", 62_220_288)
INDEXER = ExpectedPool("host.indexer", 13_178_880)
MIB_2 = 2 << 20


def mapped(size_bytes: int, address: int = 0x1000, page: int = 4096, *, resident: bool | None = True) -> Mapping:
    return Mapping(1, address, size_bytes, "shared_anon", page, resident=resident)


def test_the_kernels_rounding_is_no_difference() -> None:
    primary, indexer = match_pools([PRIMARY, INDEXER], [mapped(13_180_928, 1), mapped(62_222_336, 2)])
    assert (primary.seen_bytes, primary.exact) == (62_220_288, True)
    assert primary.mapping is not None
    assert primary.mapping.size_bytes == 62_222_336
    assert (indexer.seen_bytes, indexer.exact) == (13_178_880, True)


def test_a_huge_page_pool_matches_at_its_own_page_size() -> None:
    (primary,) = match_pools([PRIMARY], [mapped(round_up(62_220_288, MIB_2), page=MIB_2)])
    assert (primary.seen_bytes, primary.exact) == (62_220_288, True)


def test_the_largest_in_reach_stands_for_a_pool_without_an_exact_match() -> None:
    (primary,) = match_pools([PRIMARY], [mapped(40_000_000, 1), mapped(68_440_064, 2), mapped(200_000_000, 3)])
    assert (primary.seen_bytes, primary.exact) == (68_440_064, False)


def test_powers_of_two_come_last_because_torch_rounds_to_them() -> None:
    (primary,) = match_pools([PRIMARY], [mapped(1 << 26, 1), mapped(61_001_728, 2)])
    assert primary.seen_bytes == 61_001_728
    (only_torch,) = match_pools([PRIMARY], [mapped(1 << 26, 1)])
    assert only_torch.seen_bytes == 1 << 26


def test_an_exact_pool_is_not_taken_for_its_missing_neighbour() -> None:
    small = ExpectedPool("host.indexer", 62_220_288 // 2 + 4096)
    missing, found = match_pools([ExpectedPool("host.primary", 100_000_000), small], [mapped(round_up(small[1], 4096))])
    assert missing.seen_bytes is None
    assert found.exact


def test_a_mapping_that_is_not_resident_is_no_pool() -> None:
    (primary,) = match_pools([PRIMARY], [mapped(62_222_336, resident=False)])
    assert primary.mapping is None


def test_out_of_reach_is_missing() -> None:
    (primary,) = match_pools([PRIMARY], [mapped(62_220_288 * 2 + 4096, 1), mapped(62_220_288 // 2 - 4096, 2)])
    assert primary.seen_bytes is None


@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(1, 3 * 10**6), max_size=8),
)
def test_no_mapping_is_claimed_twice_and_every_pool_answered(planned: list[int], sizes: list[int]) -> None:
    maps = [mapped(round_up(size, 4096), address) for address, size in enumerate(sizes)]
    pools = [ExpectedPool(f"pool{index}", size) for index, size in enumerate(planned)]
    matches = match_pools(pools, maps)
    assert [match.line for match in matches] == [pool.line for pool in pools]
    claimed = [match.mapping.start_address for match in matches if match.mapping]
    assert len(claimed) == len(set(claimed))
