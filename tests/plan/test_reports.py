"""The plan against sizes that people really logged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ranktop.plan import GB, GIB

from .support import HICACHE, codes, plan_of, plan_of_line


def gb(size: int) -> float:
    return round(size / GB, 2)


def test_glm_fp8_on_8_h200_with_mtp() -> None:
    """--hicache-size 96 logged 96.00 + 19.32 GB and a draft pool of 1.08 GB with rows of 576 bytes, per rank."""
    host = plan_of(HICACHE | {"hicache_size": 96, "speculative_algorithm": "EAGLE"}, "0.5.16").ranks[0].host
    assert (gb(host.primary_bytes), gb(host.indexer_bytes), gb(host.draft_bytes)) == (96.0, 19.32, 1.08)
    # `free -g` went from 0 to 868 GiB shared.
    node = 8 * (host.primary_bytes + host.indexer_bytes + host.draft_bytes)
    assert round(node / GIB) in (867, 868)


@pytest.mark.parametrize(("ratio", "primary", "indexer"), [(10.0, 226.06, 45.49), (3.0, 67.82, 13.65)])
def test_glm_w4afp8_by_ratio(ratio: float, primary: float, indexer: float) -> None:
    flags = HICACHE | {"hicache_size": 0, "hicache_ratio": ratio}
    plan = plan_of(flags, device_tokens=441_800)
    assert (gb(plan.ranks[0].host.primary_bytes), gb(plan.ranks[0].host.indexer_bytes)) == (primary, indexer)
    # The L1 line of the same log said 25.29 "GB", which is GiB.
    assert round(plan.ranks[0].device.pool_bytes / GIB, 2) == 25.29


def test_ratio_and_size_together_with_mooncake() -> None:
    plan = plan_of_line(
        "--enable-hierarchical-cache --hicache-ratio 2 --hicache-size 16 --hicache-io-backend kernel "
        "--hicache-mem-layout page_first --hicache-write-policy write_through --hicache-storage-backend mooncake "
        "--hicache-storage-prefetch-policy wait_complete"
    )
    assert "PLAN-SIZE-BEATS-RATIO" in codes(plan)
    assert (plan.launch.hicache_size_gb, plan.l3.policy) == (16, "wait_complete")


_POOL = re.compile(r"kv hierarchical KV host pool: (\d+) tokens, ([\d.]+) GB")
_INDEXER = re.compile(r"Allocating ([\d.]+) GB host memory for DSA indexer")


@pytest.mark.shared
@pytest.mark.parametrize("size", [64, 120])
def test_pool_lines_of_the_log(shared: Path, size: int) -> None:
    text = (shared / "samples" / f"hostpool_0.5.18_tp8_size{size}_ok.log").read_text()
    host = plan_of(HICACHE | {"hicache_size": size, "speculative_algorithm": "EAGLE"}).ranks[0].host
    pools, indexers = set(_POOL.findall(text)), set(_INDEXER.findall(text))
    assert pools == {(str(host.tokens), f"{host.primary_bytes / GB:.2f}")}
    assert indexers == {f"{host.indexer_bytes / GB:.2f}"}


@pytest.mark.shared
@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_resolution_is_the_servers(shared: Path, version: str) -> None:
    """What the real argument classes made of probes (`-> {...}` lines), and which they refused."""
    text = (shared / "samples" / f"serverargs_resolution_probes_{version}.log").read_text()
    base = HICACHE | {"hicache_size": 0}
    layer_split = {
        "tp_size": 4,
        "enable_prefill_cp": True,
        "cp_strategy": "interleave",
        "enable_dsa_cache_layer_split": True,
    }
    probes = {
        "probe_layersplit_null_mode": layer_split,
        "probe_layersplit_zigzag": layer_split | {"disaggregation_mode": "prefill", "cp_strategy": "zigzag"},
        "probe_layersplit_nixl": layer_split
        | {"disaggregation_mode": "prefill", "disaggregation_transfer_backend": "nixl"},
        "probe_dcp_hicache_l2": base | {"dcp_size": 8, "hicache_io_backend": "direct"},
        "probe_layer_first_mooncake_kernel": base
        | {"hicache_storage_backend": "mooncake", "hicache_mem_layout": "layer_first"},
        "probe_pfd_kernel": base | {"hicache_mem_layout": "page_first_direct"},
    }
    for name, flags in probes.items():
        refused = re.search(rf"^{name} FAILED \w+ (.*)$", text, re.MULTILINE)
        plan = plan_of(flags, version)
        rejected = [row.message for row in plan.eligibility if row.verdict == "rejected"]
        assert bool(refused) == bool(rejected), name
        if refused:
            assert any(refused.group(1).startswith(message.split(" (")[0][:60]) for message in rejected), name
            continue
        resolved = re.search(rf"^{name} OK\n\s+-> (.*)$", text, re.MULTILINE)
        assert resolved is not None, name
        assert f"'hicache_mem_layout': '{plan.launch.mem_layout}'" in resolved.group(1), name
        assert f"'hicache_io_backend': '{plan.launch.io_backend}'" in resolved.group(1), name
