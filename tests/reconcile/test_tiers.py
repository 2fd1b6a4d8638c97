"""Tier shares and transfer rates: once and not once a rank, on genuine pages and on every gap in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.reconcile.series import Series, window
from ranktop.reconcile.tiers import host_bytes_per_token, logical, tier_shares, transfer_rates
from ranktop.reconcile.verdict import TransferRates
from ranktop.sample import MetricsPage
from tests.reconcile.pages import between, page, sample_page

BYTES_PER_TOKEN = (656 + 132) * 79
ALL_LAYOUTS = [
    "0.5.18_tp8_allsched_hicache_l2l3_scrape{}",
    "0.5.18_tp8_default_rank0_scrape{}",
    "0.5.23_tp8_allsched_hicache_l2l3_scrape{}",
    "0.5.23_tp8_default_rank0_scrape{}",
]


def rates_between(before: MetricsPage | None, after: MetricsPage, version: str | None) -> TransferRates:
    return transfer_rates(*between(before, after), version, host_bytes_per_token(Series(after)))


@pytest.mark.shared
@pytest.mark.parametrize("name", ALL_LAYOUTS)
def test_backup_is_counted_once_over_ranks(shared: Path, name: str) -> None:
    pages = [sample_page(shared, name.format(number), at=number * 10.0) for number in (1, 2, 3)]
    backup = "sglang:hicache_backup_tokens_total"
    assert logical(window(pages[0], pages[1]), backup, 8, pool="kv") == 98_048
    assert logical(window(pages[1], pages[2]), backup, 8, pool="kv") == 147_072
    assert logical(window(pages[1], pages[2]), backup, None, pool="kv") == 147_072


@pytest.mark.shared
@pytest.mark.parametrize("name", ALL_LAYOUTS)
def test_bytes_are_a_node_total(shared: Path, name: str) -> None:
    first, second, third = (sample_page(shared, name.format(number), at=number * 10.0) for number in (1, 2, 3))
    version = name[:6]
    rates = rates_between(first, second, version)
    assert rates.backup_bytes_per_second == pytest.approx(98_048 * BYTES_PER_TOKEN * 8 / 10)
    assert rates.load_back_bytes_per_second == pytest.approx(12_032 * BYTES_PER_TOKEN * 8 / 10)
    assert (rates.prefetch_bytes_per_second, rates.source) == (None, "reported")
    later = rates_between(second, third, version)
    assert later.prefetch_bytes_per_second == pytest.approx(6_400 * BYTES_PER_TOKEN * 8 / 10)
    assert later.source == "inferred"
    assert host_bytes_per_token(Series(third)) == pytest.approx(BYTES_PER_TOKEN)


@pytest.mark.shared
@pytest.mark.parametrize("name", ALL_LAYOUTS)
def test_shares_of_a_window(shared: Path, name: str) -> None:
    second, third = (sample_page(shared, name.format(number), at=number * 10.0) for number in (2, 3))
    shares = tier_shares(*between(second, third), name[:6])
    total = 156_000 + 90_000 + 36_000 + 6_400
    assert (shares.window_tokens, shares.window_seconds, shares.source) == (total, 10.0, "reported")
    assert shares.device_hit == pytest.approx(90_000 / total)
    assert shares.host_hit == pytest.approx(36_000 / total)
    assert shares.storage_hit == pytest.approx(6_400 / total)
    assert shares.miss == pytest.approx(156_000 / total)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "groups", "ranks"),
    [
        ("0.5.18_pd_prefill_cp4_layersplit_allsched", 1, 4),
        ("0.5.23_pd_prefill_cp4_layersplit_default", 1, 4),
        ("0.5.18_dp2_tp4_plain_default", 2, 8),
        ("0.5.23_dp2_tp4_plain_default", 2, 8),
        ("0.5.18_dp2_tp4_dpattention_default", 2, 4),
        ("0.5.23_dp2_tp4_dpattention_default", 2, 4),
    ],
)
def test_every_layout_counts_a_group_once(shared: Path, name: str, groups: int, ranks: int) -> None:
    current = sample_page(shared, name)
    shares = tier_shares(*between(None, current), name[:6])
    assert shares.window_tokens == groups * (312_000 + 180_000 + 60_000 + 6_400)
    assert shares.window_seconds is None
    gains = window(None, current)
    assert logical(gains, "sglang:hicache_backup_tokens_total", ranks, pool="kv") == groups * 6 * 49_024


EFFECTIVE = """
*num_running_reqs{{tp_rank="0"}} 1
*prefill_effective_tokens_total{{mode="input",tp_rank="0"}} {0}
*prefill_effective_tokens_total{{mode="device_hit",tp_rank="0"}} {1}
*prefill_effective_tokens_total{{mode="host_hit",tp_rank="0"}} {2}
*prefill_effective_tokens_total{{mode="storage_hit",tp_rank="0"}} {3}
*prefill_effective_tokens_total{{mode="input",tp_rank="1"}} 0
*prefill_effective_tokens_total{{mode="device_hit",tp_rank="1"}} 0
"""


def test_a_restart_counts_from_zero() -> None:
    shares = tier_shares(
        *between(page(EFFECTIVE.format(900, 90, 9, 1)), page(EFFECTIVE.format(10, 20, 30, 40), 5.0)), "0.5.18"
    )
    assert shares.window_tokens == 100
    assert (shares.miss, shares.device_hit, shares.host_hit, shares.storage_hit) == (0.1, 0.2, 0.3, 0.4)


def test_no_traffic_is_no_share() -> None:
    same = EFFECTIVE.format(10, 20, 30, 40)
    shares = tier_shares(*between(page(same), page(same, 5.0)), "0.5.18")
    assert (shares.window_tokens, shares.miss, shares.host_hit) == (0, None, None)


@pytest.mark.parametrize("spelling", ["storage_MooncakeStore", "storage_HiCacheFile", "storage"])
def test_finished_requests_where_a_version_counts_no_tiers(spelling: str) -> None:
    def at(prompt: int, device: int, seconds: float) -> MetricsPage:
        text = f"""*prompt_tokens_total{{is_streaming="true"}} {prompt}
            *prompt_tokens_total{{is_streaming="false"}} 100
            *cached_tokens_total{{cache_source="device"}} {device}
            *cached_tokens_total{{cache_source="{spelling}"}} 10"""
        return page(text, seconds)

    shares = tier_shares(*between(at(0, 0, 0.0), at(100, 60, 5.0)), "0.5.17")
    assert (shares.device_hit, shares.host_hit, shares.storage_hit, shares.miss) == (0.6, 0.0, 0.0, 0.4)
    assert "finishes" in shares.detail
    since_start = tier_shares(*between(None, at(100, 60, 5.0)), "0.5.17")
    assert (since_start.storage_hit, since_start.window_tokens) == (0.05, 200)


def test_hits_without_a_breakdown_give_only_the_miss_share() -> None:
    text = '*prompt_tokens_total 100\n*cached_tokens_total{cache_source="total"} 25'
    shares = tier_shares(*between(None, page(text)), "0.5.16")
    assert (shares.device_hit, shares.miss) == (None, 0.75)


def test_nothing_to_share() -> None:
    assert tier_shares(*between(None, page('*num_running_reqs{tp_rank="0"} 1')), "0.5.18").source is None
    assert "0.5.16 has no per-tier counter" in tier_shares(*between(None, page("*token_usage 0")), "0.5.16").detail


@pytest.mark.parametrize(
    ("text", "version", "backup"),
    [
        ("*hicache_host_total_tokens 5", "0.5.18", 0.0),
        ("*hicache_host_total_tokens 5", "0.5.17", None),
        ("*hicache_host_total_tokens 5", None, None),
        ("*token_usage 0", "0.5.18", None),
    ],
)
def test_an_absent_counter_is_zero_only_where_it_could_be(text: str, version: str | None, backup: float | None) -> None:
    rates = rates_between(page(text), page(text, 10.0), version)
    assert rates.backup_bytes_per_second == backup


def test_bytes_from_tokens_before_byte_counters() -> None:
    before, after = page("*load_back_tokens_total 80"), page("*load_back_tokens_total 160", 10.0)
    assert rates_between(before, after, "0.5.16").load_back_bytes_per_second is None
    rates = transfer_rates(*between(before, after), "0.5.16", 1000)
    assert (rates.load_back_bytes_per_second, rates.source) == (8000.0, "inferred")


def test_no_window_no_rate() -> None:
    assert rates_between(None, page("*load_back_bytes_total 5"), "0.5.18").load_back_bytes_per_second is None
