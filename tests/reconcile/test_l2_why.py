"""Why L2 gives no hits: one reason, the first in order, from a token ledger whose sums hold."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktop.reconcile.ledger import Ledger, Window
from ranktop.reconcile.rules.l2_why import why
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.tokenledger import token_ledger
from tests.reconcile.tier_story import found, judge, story, with_info

QUIET: dict[str, float] = {
    "input_tokens": 100_000,
    "device_hit_tokens": 0,
    "host_hit_tokens": 0,
    "storage_hit_tokens": 0,
    "evicted_tokens": 80_000,
    "backup_tokens": 90_000,
    "load_back_tokens": 0,
    "dropped_tokens": 0,
}


def window(**totals: float | None) -> Window:
    return Window(None, Ledger(0.0, 0.0, **(QUIET | totals)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("totals", "reason"),
    [
        pytest.param({"evicted_tokens": 0}, "not_needed", id="L1 never evicted"),
        pytest.param({"backup_tokens": 100}, "not_written", id="evicted and not written"),
        pytest.param({"backup_tokens": 10_000, "dropped_tokens": 70_000}, "dropped", id="dropped"),
        pytest.param({"backup_tokens": 5_000_000}, "overwritten", id="written over before reuse"),
        pytest.param({"host_hit_tokens": 30_000}, "phantom", id="hits that were computed again"),
        pytest.param({}, "in_no_tier", id="nothing matches anywhere"),
        pytest.param({"device_hit_tokens": 40_000}, "no_reuse", id="reuse is served by L1"),
        pytest.param({"host_hit_tokens": 30_000, "load_back_tokens": 30_000}, None, id="L2 gives hits"),
        pytest.param({"input_tokens": 100}, None, id="no traffic"),
        pytest.param({"host_hit_tokens": None, "storage_hit_tokens": None}, None, id="hits are not counted"),
        pytest.param({"evicted_tokens": None}, None, id="evictions are not counted"),
        pytest.param({"backup_tokens": None}, None, id="writes are not counted (before 0.5.18)"),
    ],
)
def test_reason(totals: Mapping[str, float | None], reason: str | None) -> None:
    verdict = why(window(**totals), Thresholds(), capacity_tokens=2_345_216)
    assert (verdict.reason if verdict else None) == reason


def test_radix_off_comes_first() -> None:
    verdict = why(window(evicted_tokens=0), Thresholds(), radix_off=True)
    assert verdict is not None
    assert verdict.reason == "radix_off"


amounts = st.one_of(st.none(), st.integers(0, 10**9).map(float))


@given(st.fixed_dictionaries(dict.fromkeys(QUIET, amounts)))
def test_both_sums_hold(totals: dict[str, float | None]) -> None:
    told = token_ledger(Window(None, Ledger(0.0, 0.0, **totals)))  # type: ignore[arg-type]
    if told.written is not None and told.evicted is not None and told.lost is not None:
        assert told.evicted == pytest.approx(told.written + min(told.dropped or 0.0, told.evicted) + told.lost)
        assert min(told.written, told.lost) >= 0
    if told.phantom is not None and told.hit is not None and told.read is not None:
        assert told.hit == pytest.approx(told.read + told.phantom)
        assert told.phantom >= 0


HICACHE = {"model_path": "zai-org/GLM-5.2-FP8", "tp_size": 8, "enable_hierarchical_cache": True, "hicache_size": 120}


def test_the_finding_carries_the_ledger() -> None:
    told = [
        with_info(sample, **HICACHE)
        for sample in story(600, {"input": 500, "device": 0, "host": 0, "loaded": 0, "evicted": 300, "written": 300})
    ]
    (finding,) = found(judge(*told), "L2-WHY")
    assert (finding.severity, finding.evidence["reason"]) == ("warn", "in_no_tier")
    assert (finding.evidence["evicted_tokens"], finding.evidence["written_tokens"]) == (180_000, 180_000)
    assert finding.evidence["lost_tokens"] == 0
    assert found(judge(*told[:-1]), "L2-WHY") == [], "not ten minutes yet"


def test_no_l2_no_question() -> None:
    told = story(600, {"input": 500, "device": 0, "host": 0, "loaded": 0, "evicted": 300, "written": 0})
    off = {"model_path": "zai-org/GLM-5.2-FP8", "tp_size": 8, "enable_hierarchical_cache": False}
    assert found(judge(*(with_info(sample, **off) for sample in told)), "L2-WHY") == []
