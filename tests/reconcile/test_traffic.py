"""Tokens and bytes through the tiers of a server, each counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.reconcile.series import window
from ranktop.reconcile.traffic import traffic
from ranktop.reconcile.verdict import Traffic
from tests.reconcile.pages import page, sample_page

BYTES_PER_TOKEN = (656 + 132) * 79


@pytest.mark.shared
@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
@pytest.mark.parametrize("name", ["tp8_allsched_hicache_l2l3_scrape", "tp8_default_rank0_scrape"])
def test_a_servers_traffic(shared: Path, version: str, name: str) -> None:
    second, third = (sample_page(shared, f"{version}_{name}{n}", n * 10.0) for n in (2, 3))
    found = traffic(window(second, third), 10.0, version, 8)
    assert found.backup_tokens_per_second == pytest.approx(14_707.2)
    assert found.load_back_tokens_per_second == pytest.approx(2_406.4)
    assert found.evicted_tokens_per_second == pytest.approx(6_144)
    assert found.dropped_tokens_per_second == {"host_pressure/kv": pytest.approx(204.8)}
    assert found.prefetched_tokens_per_second == pytest.approx(640)
    assert found.storage_backup_tokens_per_second == pytest.approx(4_096)
    seconds_of_a_rank = [0.021 * 3 + 0.0005 * rank for rank in range(8)]
    assert found.backup_copy_bytes_per_second == pytest.approx(
        8 * 147_072 * BYTES_PER_TOKEN / sum(seconds_of_a_rank), rel=0.01
    )


def test_no_window_and_no_counters() -> None:
    assert traffic(window(None, page("*evicted_tokens_total 5")), None, "0.5.18") == Traffic()
    nothing = traffic(window(page("*token_usage 0"), page("*token_usage 0")), 5.0, "0.5.18")
    assert nothing.backup_tokens_per_second is None
    assert nothing.dropped_tokens_per_second == {}
    hicache = page("*hicache_host_total_tokens 5")
    assert traffic(window(hicache, hicache), 5.0, "0.5.18").backup_tokens_per_second == 0.0
    assert traffic(window(hicache, hicache), 5.0, "0.5.17").backup_tokens_per_second is None
