"""Properties of every plan."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ranktop.plan import PROFILES, layersplit, model_from_config
from ranktop.plan.gate import RESERVE_BYTES
from ranktop.plan.geometry import page_aligned
from ranktop.plan.machine import needed_bytes

from .support import HICACHE, passes_check, plan_of

VERSIONS = st.sampled_from(sorted(PROFILES))
DTYPES = st.sampled_from(["bfloat16", "fp8_e4m3"])


@given(st.integers(1, 500), st.integers(1, 64))
def test_ranges_cover_every_layer_once(layers: int, parts: int) -> None:
    owned = [layer for start, end in layersplit.ranges(layers, parts) for layer in range(start, end)]
    assert owned == list(range(layers))
    assert layersplit.owners(layers, parts) == tuple(
        part for part, (start, end) in enumerate(layersplit.ranges(layers, parts)) for _ in range(start, end)
    )
    sizes = [end - start for start, end in layersplit.ranges(layers, parts)]
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) == layersplit.max_owned(layers, parts)


@given(st.integers(0, 1 << 40), st.sampled_from([1, 16, 32, 64, 128]))
def test_tokens_are_whole_pages_and_more_than_asked(requested: int, page_size: int) -> None:
    slots = page_aligned(requested, page_size)
    assert slots.tokens == slots.pages * page_size
    assert requested < slots.tokens <= requested + page_size


@settings(max_examples=60, deadline=None)
@given(VERSIONS, DTYPES, st.integers(1, 400), st.integers(1, 400))
def test_bytes_never_fall_when_the_size_grows(version: str, dtype: str, one: int, other: int) -> None:
    small, large = sorted((one, other))
    needed = [
        needed_bytes(plan_of(HICACHE | {"kv_cache_dtype": dtype, "hicache_size": size}, version))
        for size in (small, large)
    ]
    assert needed[0] <= needed[1]


@settings(max_examples=40, deadline=None)
@given(VERSIONS, st.sampled_from([1, 2, 4, 8]), st.integers(1, 200))
def test_bytes_never_fall_when_ranks_grow(version: str, tp: int, size: int) -> None:
    few = plan_of(HICACHE | {"tp_size": tp, "hicache_size": size}, version).node
    more = plan_of(HICACHE | {"tp_size": tp * 2, "hicache_size": size}, version).node
    assert few.allocated_bytes * 2 == more.allocated_bytes
    assert few.surely_fits_bytes <= more.surely_fits_bytes
    assert few.surely_fails_below_bytes <= more.surely_fails_below_bytes


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(0, 200), st.integers(1, 200_000))
def test_bytes_never_fall_when_layers_grow(layers: int, more: int, device_tokens: int) -> None:
    flags = {"enable_hierarchical_cache": True, "hicache_ratio": 2.0}

    def allocated(count: int) -> int:
        config: dict[str, Any] = {"num_hidden_layers": count, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
        model = model_from_config({**config, "index_head_dim": 128})
        return plan_of(flags, model=model, device_tokens=device_tokens).node.allocated_bytes

    assert allocated(layers) <= allocated(layers + more)


def simulate(version: str, free: int, order: list[int], primary: int, indexer: int, allocated: int) -> bool:
    """Whether all ranks pass when they check and allocate in `order`: each entry is a rank's next step.

    Steps of a rank: check its primary; populate it; check its indexer; populate that.
    """
    profile, ranks = PROFILES[version], max(order) + 1
    step = dict.fromkeys(range(ranks), 0)
    for rank in order:
        if step[rank] in (0, 2):
            if not passes_check(profile, free, primary if step[rank] == 0 else indexer, ranks):
                return False
        else:
            free -= primary if step[rank] == 1 else allocated - primary
        step[rank] += 1
    return True


@settings(max_examples=120, deadline=None)
@given(VERSIONS, st.integers(2, 4), st.data())
def test_gate_bounds_hold_in_every_order(version: str, ranks: int, data: st.DataObject) -> None:
    plan = plan_of(HICACHE | {"tp_size": ranks}, version)
    host, node = plan.ranks[0].host, plan.node
    order = data.draw(st.permutations([rank for rank in range(ranks) for _ in range(4)]))
    sizes = (host.primary_bytes, host.indexer_bytes, host.allocated_bytes)
    assert simulate(version, node.surely_fits_bytes, order, *sizes)
    assert not simulate(version, node.surely_fails_below_bytes - 1, order, *sizes)
    below = data.draw(st.integers(RESERVE_BYTES, node.surely_fails_below_bytes - 1))
    assert not simulate(version, below, order, *sizes)


def test_gate_bounds_are_the_contract_formulas() -> None:
    for version, divided in (("0.5.18", False), ("0.5.19", True), ("0.5.23", True)):
        plan = plan_of(HICACHE, version)
        host, ranks, reserve = plan.ranks[0].host, 8, RESERVE_BYTES
        p, c, held = host.primary_bytes, host.indexer_bytes, host.allocated_bytes
        others = reserve + (ranks - 1) * held
        fits = max(others + ranks * p, others + p + ranks * c) if divided else others + p + c
        fails = reserve + ranks * (p + c) if divided else reserve + ranks * p + c
        assert (plan.node.surely_fits_bytes, plan.node.surely_fails_below_bytes) == (fits, fails)
