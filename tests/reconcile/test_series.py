"""Which rank a value is of, which ranks are visible, and what counters gained."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.reconcile.ranklabels import RankLabels, labels_of
from ranktop.reconcile.series import Series, seconds_between, window
from ranktop.reconcile.series_by_version import has_family, is_before, missing, nearest
from ranktop.sample import RankTag
from tests.reconcile.pages import page, sample_page


def tp(*numbers: int) -> frozenset[RankLabels]:
    return frozenset(RankLabels(0, 0, number) for number in numbers)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "ranks", "visible", "groups"),
    [
        ("0.5.18_tp8_default_rank0_scrape1", tp(*range(8)), tp(0), 1),
        ("0.5.18_tp8_allsched_hicache_l2l3_scrape1", tp(*range(8)), tp(*range(8)), 1),
        ("0.5.18_pd_prefill_cp4_layersplit_default", tp(0, 1, 2, 3), tp(0, 1, 2, 3), 1),
        ("0.5.23_pd_prefill_cp4_layersplit_default", tp(0, 1, 2, 3), tp(0), 1),
        (
            "0.5.18_dp2_tp4_dpattention_default",
            frozenset({RankLabels(0, 0, 0), RankLabels(0, 0, 1), RankLabels(1, 0, 2), RankLabels(1, 0, 3)}),
            frozenset({RankLabels(0, 0, 0), RankLabels(1, 0, 2)}),
            2,
        ),
        (
            "0.5.23_dp2_tp4_plain_default",
            frozenset(RankLabels(dp, 0, rank) for dp in (0, 1) for rank in range(4)),
            frozenset({RankLabels(0, 0, 0), RankLabels(1, 0, 0)}),
            2,
        ),
    ],
)
def test_ranks_of_genuine_pages(
    shared: Path, name: str, ranks: frozenset[RankLabels], visible: frozenset[RankLabels], groups: int
) -> None:
    series = Series(sample_page(shared, name))
    assert series.ranks() == ranks
    assert series.stats_ranks() == visible
    assert series.groups() == groups
    assert len(series.leaders()) == groups


@pytest.mark.shared
def test_a_hidden_rank_has_its_groups_value_and_its_own_constants(shared: Path) -> None:
    series = Series(sample_page(shared, "0.5.18_dp2_tp4_dpattention_default"))
    assert series.speaker(RankLabels(1, 0, 2)) == RankLabels(1, 0, 2)
    assert series.speaker(RankLabels(1, 0, 3)) == RankLabels(1, 0, 2)
    assert series.own("sglang:num_running_reqs", RankLabels(1, 0, 2)) == 18
    assert series.own("sglang:max_total_num_tokens", RankLabels(1, 0, 3)) == 432000
    assert series.speaker(RankLabels(2, 0, 4)) is None
    assert series.over_groups("sglang:num_running_reqs") == 36


@pytest.mark.shared
def test_pids_of_stats_ranks(shared: Path) -> None:
    pids = Series(sample_page(shared, "0.5.18_tp8_allsched_hicache_l2l3_scrape1")).pids()
    assert frozenset(pids.values()) == tp(*range(8))


def test_a_bare_scheduler_is_tp0() -> None:
    series = Series(page('*num_running_reqs{tp_rank="0"} 3'))
    assert series.own("sglang:num_running_reqs", labels_of(RankTag())) == 3


def test_priority_rows_are_no_total() -> None:
    series = Series(page('*num_queue_reqs{tp_rank="0",priority=""} 3\n*num_queue_reqs{tp_rank="0",priority="1"} 2'))
    assert series.total("sglang:num_queue_reqs") == 3


def test_two_engines_that_differ_give_no_rank_value() -> None:
    text = '*{name}{{worker_addr="a",tp_rank="0"}} {a}\n*{name}{{worker_addr="b",tp_rank="0"}} {b}'
    same = Series(page(text.format(name="num_running_reqs", a=2, b=2)))
    differ = Series(page(text.format(name="num_running_reqs", a=2, b=3)))
    assert same.own("sglang:num_running_reqs", RankLabels(0, 0, 0)) == 2
    assert differ.own("sglang:num_running_reqs", RankLabels(0, 0, 0)) is None
    names = ("sglang:num_running_reqs", "sglang:kv_used_tokens")
    assert same.own_of(names, RankLabels(0, 0, 0)) == [2, None]
    assert differ.own_of(names, RankLabels(0, 0, 0)) == [None, None]


def test_a_rank_label_that_is_no_number_is_no_rank() -> None:
    assert Series(page('*num_running_reqs{tp_rank="x"} 3')).stats_ranks() == frozenset()


def test_one_counter_that_went_back_restarts_the_page() -> None:
    before = page("*prompt_tokens_total 100\n*generation_tokens_total 5")
    after = page("*prompt_tokens_total 40\n*generation_tokens_total 9", at=5)
    gains = window(before, after)
    assert gains.total("sglang:prompt_tokens_total") == 40
    assert gains.total("sglang:generation_tokens_total") == 9


def test_a_window_takes_counters_as_gains_and_gauges_as_they_stand() -> None:
    before = page('*prompt_tokens_total 10\n*num_running_reqs{tp_rank="0"} 4', at=100)
    after = page('*prompt_tokens_total 15\n*num_running_reqs{tp_rank="0"} 4\n*num_aborted_requests_total 2', at=105)
    gains = window(before, after)
    assert gains.total("sglang:prompt_tokens_total") == 5
    assert gains.total("sglang:num_running_reqs") == 4
    assert gains.total("sglang:num_aborted_requests_total") == 2
    assert gains.total("sglang:num_requests_total") is None
    assert seconds_between(before, after) == 5
    assert seconds_between(None, after) is None
    assert seconds_between(after, before) is None


def test_pages_of_the_same_series_share_an_index() -> None:
    text = '*prompt_tokens_total {}\n*num_running_reqs{{tp_rank="0"}} {}'
    first = Series(page(text.format(1, 2)))
    second = Series(page(text.format(5, 3), at=5), first)
    assert second.index is first.index
    assert second.own("sglang:num_running_reqs", RankLabels(0, 0, 0)) == 3
    names = ("sglang:kv_used_tokens", "sglang:num_running_reqs")
    assert first.own_of(names, RankLabels(0, 0, 0)) == [first.own(name, RankLabels(0, 0, 0)) for name in names]
    assert second.own_of(names, RankLabels(0, 0, 0)) == [None, 3]
    assert second.own_of(names, RankLabels(0, 0, 7)) == [None, None]
    assert second.since(first).total("sglang:prompt_tokens_total") == 4
    other = Series(page(text.format(6, 3) + "\n*num_aborted_requests_total 2", at=9), second)
    assert other.index is not first.index
    gains = other.since(second)
    assert (gains.total("sglang:prompt_tokens_total"), gains.total("sglang:num_aborted_requests_total")) == (1, 2)


def test_counters_of_equal_labels_are_summed_before_they_are_compared() -> None:
    twice = "*prompt_tokens_total 10\n*prompt_tokens_total 4"
    gains = window(page(twice), page("*prompt_tokens_total 13\n*prompt_tokens_total 3", at=5))
    assert gains.total("sglang:prompt_tokens_total") == 2


@pytest.mark.parametrize(
    ("version", "row"),
    [("0.5.18", "0.5.18"), ("0.5.18.post1", "0.5.18"), ("0.6.0", "0.5.23"), ("0.5.1", None), ("x", None), (None, None)],
)
def test_nearest_version(version: str | None, row: str | None) -> None:
    assert nearest(version) == row


def test_what_a_version_lacks() -> None:
    assert has_family("sglang:hicache_backup_bytes_total", "0.5.17") is False
    assert has_family("sglang:hicache_backup_bytes_total", "0.5.18") is True
    assert has_family("sglang:hicache_backup_bytes_total", None) is None
    assert missing("0.5.17", ("sglang:prefill_effective_tokens_total", "sglang:token_usage")) == (
        "sglang:prefill_effective_tokens_total",
    )
    assert is_before("0.5.17", "0.5.18") is True
    assert is_before("0.5.18", "0.5.18") is False
    assert is_before("main", "0.5.18") is None
