"""Totals once and not once a rank, windows between them, and what the log and the door leave behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.reconcile.eventlog import KEPT, EventLog
from ranktop.reconcile.ledger import Ledger, Window, has_restarted, ledger, over
from ranktop.reconcile.lines.rates import Gains, rate_lines
from ranktop.reconcile.series import Series, window
from ranktop.sample import Event, RankTag
from tests.reconcile.pages import page, sample_page


@pytest.mark.shared
@pytest.mark.parametrize("layout", ["allsched_hicache_l2l3", "default_rank0"])
@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_totals_of_genuine_pages_are_logical(shared: Path, version: str, layout: str) -> None:
    told = ledger(Series(sample_page(shared, f"{version}_tp8_{layout}_scrape3")), 0.0, version, 8)
    assert (told.backup_tokens, told.load_back_tokens, told.evicted_tokens) == (294_144, 36_096, 61_440)
    assert (told.input_tokens, told.host_hit_tokens, told.prefetched_tokens) == (312_000, 60_000, 6_400)
    assert sum(told.dropped_by_reason.values()) == told.dropped_tokens


@pytest.mark.shared
def test_reasons_of_storage_are_logical_too(shared: Path) -> None:
    told = ledger(Series(sample_page(shared, "0.5.23_tp8_allsched_hicache_l2l3_scrape3")), 0.0, "0.5.23", 8)
    assert told.unfulfilled_by_reason["deadline"] == 1792
    assert told.unfulfilled_by_reason["host_capacity"] == 0
    assert len(told.prefetched_by_rank) == 8


@pytest.mark.shared
def test_rates_of_a_rank_are_its_own_or_a_share(shared: Path) -> None:
    for version, group in (("0.5.18", True), ("0.5.23", False)):
        before, after = (
            sample_page(shared, f"{version}_tp8_allsched_hicache_l2l3_scrape{number}", at=10.0 * number)
            for number in (2, 3)
        )
        gains = Gains(window(before, after), 10.0, version, 8)
        lines = {line.line: line for line in rate_lines(gains, RankTag(tp=3), False)}
        assert lines["rate.backup"].seen == pytest.approx(147_072 * 788 * 79 / 10)
        assert lines["rate.backup"].group is group
        assert (lines["rate.prefetch"].seen, lines["rate.prefetch"].group) == (640.0, False)
        assert lines["rate.copy"].seen is not None


STORAGE = 'attn_cp_rank="{cp}",attn_cp_size="{size}",dp_rank="0",pp_rank="0",storage_backend="file",tp_rank="{tp}"'


def storage_rates(name: str, rows: list[tuple[int, int, int]], tags: list[RankTag]) -> list[float | int | None]:
    """Of each tag. `rows`: (cp rank, cp size, tp rank) of every series, each with 10 tokens in 1 s."""
    text = "".join(f'*max_total_num_tokens{{tp_rank="{tp}"}} 1\n' for tp in range(len(tags)))
    text += "".join(f"*{name}{{{STORAGE.format(cp=cp, size=size, tp=tp)}}} 10\n" for cp, size, tp in rows)
    gains = Gains(window(None, page(text)), 1.0, "0.5.18", len(tags))
    line = "rate.storage_backup" if name.startswith("backuped") else "rate.prefetch"
    return [next(one.seen for one in rate_lines(gains, tag, False) if one.line == line) for tag in tags]


def test_what_one_rank_writes_to_storage_is_no_other_ranks() -> None:
    ranks = [RankTag(tp=tp) for tp in range(4)]
    assert storage_rates("backuped_tokens_total", [(0, 1, 0)], ranks) == [10.0, None, None, None]


def test_storage_rows_of_context_parallel_ranks() -> None:
    """tp_rank of a storage series lies within the attention group, that of a title is global."""
    ranks = [RankTag(cp=cp, tp=2 * cp + tp) for cp in range(2) for tp in range(2)]
    rows = [(cp, 2, tp) for cp in range(2) for tp in range(2)]
    assert storage_rates("prefetched_tokens_total", rows, ranks) == [10.0] * 4
    assert storage_rates("prefetched_tokens_total", rows[2:3], ranks) == [None, None, 10.0, None]


def test_counters_that_only_some_ranks_have_are_counted_whole() -> None:
    text = """*prefetched_tokens_total{dp_rank="0",tp_rank="0"} 100
        *backuped_tokens_total{dp_rank="0",tp_rank="0"} 50
        *storage_prefetch_unfulfilled_tokens_total{dp_rank="0",reason="deadline",tp_rank="0"} 7
        *num_retracted_requests_total{tp_rank="0"} 3"""
    everyone = "".join(f'\n*max_total_num_tokens{{tp_rank="{tp}"}} 1' for tp in range(8))
    told = ledger(Series(page(text + everyone)), 0.0, "0.5.20", 8)
    assert (told.prefetched_tokens, told.storage_backup_tokens, told.retracted_requests) == (100, 50, 3)
    assert told.unfulfilled_by_reason == {"deadline": 7}


@pytest.mark.shared
@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_layersplit_ranks_copy_what_they_own(shared: Path, version: str) -> None:
    """Ranks 0 and 1 own 20 layers, 2 and 3 own 19. Until 0.5.20 all are one series."""
    current = sample_page(shared, f"{version}_pd_prefill_cp4_layersplit_default", at=10.0)
    gains = Gains(window(None, current), 10.0, version, 4)
    backup = [
        next(line.seen for line in rate_lines(gains, RankTag(cp=cp, tp=cp), False) if line.line == "rate.backup")
        for cp in range(4)
    ]
    assert None not in backup
    assert (len(set(backup)) == 1) == (version == "0.5.18")


def test_a_share_of_what_is_merged_and_its_own_where_ranks_are_labelled() -> None:
    def evict(text: str, ranks: int) -> list[tuple[float | int | None, bool]]:
        gains = Gains(window(None, page(text)), 10.0, "0.5.23", ranks)
        lines = [
            next(one for one in rate_lines(gains, RankTag(tp=tp), False) if one.line == "rate.evict") for tp in (0, 1)
        ]
        return [(line.seen, line.group) for line in lines]

    labelled = """*evicted_tokens_total{dp_rank="0",pp_rank="0",tp_rank="0"} 100
        *evicted_tokens_total{dp_rank="0",pp_rank="0",tp_rank="1"} 60"""
    assert evict(labelled, 2) == [(10.0, False), (6.0, False)]
    assert evict("*evicted_tokens_total 160", 2) == [(8.0, True), (8.0, True)]
    # Two replicas of two ranks write the same two label sets.
    assert evict(labelled, 4) == [(4.0, True), (4.0, True)]


def test_no_second_page_no_rate() -> None:
    for gains in (None, Gains(Series(page("*token_usage 0")), None, "0.5.18", 8)):
        assert {line.status for line in rate_lines(gains, RankTag(tp=0), False)} == {"unknown"}


def test_a_mamba_pool_is_not_added_to_the_kv_pool() -> None:
    text = """*hicache_backup_tokens_total{pool="kv"} 32700
        *hicache_backup_tokens_total{pool="mamba"} 16
        *load_back_tokens_total 80"""
    told = ledger(Series(page(text)), 0.0, "0.5.19", 1)
    assert (told.backup_tokens, told.load_back_tokens) == (32_700, 80)


def test_what_a_page_does_not_tell_is_none_and_not_zero() -> None:
    told = ledger(Series(page("*token_usage 0")), 0.0, "0.5.18", 8)
    assert (told.backup_tokens, told.evicted_tokens, told.forward_count, told.input_tokens) == (None,) * 4
    absent = ledger(Series(page("*hicache_host_total_tokens 5")), 0.0, "0.5.18", 8)
    assert absent.backup_tokens == 0.0, "HiCache is on, this version counts, and there was no event yet"


def test_gauges_that_stand_still_look_the_same_in_any_order() -> None:
    one = '*num_running_reqs{tp_rank="0"} 1\n*num_running_reqs{tp_rank="1"} 2'
    other = "\n".join(reversed(one.split("\n")))
    moved = one.replace("} 2", "} 3")
    prints = [ledger(Series(page(text)), 0.0, "0.5.18", 2).gauges_fingerprint for text in (one, other, moved)]
    assert prints[0] == prints[1] != prints[2]


def at(seconds: float, **totals: float | None) -> Ledger:
    return Ledger(seconds, seconds, **totals)  # type: ignore[arg-type]


def test_a_window_is_at_least_as_long_as_asked() -> None:
    kept = [at(float(second), evicted_tokens=second * 10.0) for second in range(0, 100, 20)]
    found = over(kept, 50)
    assert found is not None
    assert (found.seconds, found.gain("evicted_tokens")) == (60, 600)
    assert over(kept, 81) is None
    assert over(kept[:1], 0) is None


@pytest.mark.parametrize(
    ("before", "after", "gained"),
    [(5.0, 8.0, 3.0), (None, 8.0, 8.0), (5.0, None, None), (8.0, 5.0, None), (5.0, 5.0, 0.0)],
)
def test_gain(before: float | None, after: float | None, gained: float | None) -> None:
    assert Window(at(0, evicted_tokens=before), at(1, evicted_tokens=after)).gain("evicted_tokens") == gained


def test_gains_by_reason() -> None:
    before = Ledger(0, 0, dropped_by_reason={"a": 5.0, "c": 9.0})
    after = Ledger(1, 1, dropped_by_reason={"a": 7.0, "b": 2.0, "c": 1.0})
    assert Window(before, after).gains("dropped_by_reason") == {"a": 2.0, "b": 2.0}
    assert Window(None, after).gains("dropped_by_reason") == after.dropped_by_reason


def test_a_total_that_went_back_is_another_server() -> None:
    assert has_restarted(at(0, prompt_tokens=9.0), at(1, prompt_tokens=1.0))
    assert has_restarted(at(0, prompt_tokens=9.0), at(1))
    assert not has_restarted(at(0, prompt_tokens=9.0), at(1, prompt_tokens=9.0))
    assert not has_restarted(at(0), at(1, prompt_tokens=9.0))


def test_a_start_forgets_what_the_launch_before_said() -> None:
    def event(kind: str, second: float, rank: str | None = "TP0") -> Event:
        return Event(second, kind, kind, "a:1", rank)

    log = EventLog()
    log.record([event("server_args", 1, None), event("layer_plan", 2), event("layer_plan", 3, "TP1")])
    assert set(log.newest("a:1", "layer_plan")) == {"TP0", "TP1"}
    log.record([event("server_args", 9, None), event("layer_plan", 10)])
    assert set(log.newest("a:1", "layer_plan")) == {"TP0"}
    assert [start.at_unix_seconds for start in log.starts("a:1")] == [1, 9]
    assert log.last_unix_seconds("a:1") == 10
    assert (log.all_of("b:2", "layer_plan"), log.last_unix_seconds("b:2")) == ((), None)


def test_a_log_is_bounded() -> None:
    log = EventLog()
    log.record(Event(float(number), "pd_failed", "x", "a:1") for number in range(10 * KEPT))
    assert len(log.all_of("a:1", "pd_failed")) == KEPT
