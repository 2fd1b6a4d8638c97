"""Prefill-decode hand-off from genuine pages and from composed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.reconcile.pd import handoff
from ranktop.reconcile.series import window
from ranktop.sample import ServerInfo
from tests.reconcile.pages import page, sample_page


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["0.5.18_pd_prefill_cp4_layersplit_default", "0.5.23_pd_prefill_cp4_layersplit_default"]
)
def test_a_genuine_prefill_page(shared: Path, name: str) -> None:
    found = handoff(window(None, sample_page(shared, name)), None)
    assert (found.role, found.transfers) == ("prefill", 18)
    assert (found.bootstrap_failures, found.transfer_failures, found.retries) == (1, 1, None)
    assert found.transfer_milliseconds.p50 is not None
    assert found.ranks["0/0/2"].mean_milliseconds == pytest.approx(828 / 18)
    assert set(found.queues) == {
        "num_prefill_bootstrap_queue_reqs",
        "num_prefill_inflight_queue_reqs",
        "num_queue_reqs",
    }


RANK = (
    '*max_total_num_tokens{{engine_type="prefill",tp_rank="{0}"}} 1\n*kv_transfer_latency_ms_count{{tp_rank="{0}"}} {1}'
)


def transfers(*counts: int | None) -> str:
    lines = [RANK.format(rank, count or 0) for rank, count in enumerate(counts)]
    return "\n".join(lines)


def test_counts_are_of_the_window() -> None:
    text = transfers(5) + '\n*num_transfer_failed_reqs_total{tp_rank="0"} '
    found = handoff(window(page(f"{text}2"), page(f"{text}7")), 10.0)
    assert (found.transfers, found.transfer_failures, found.window_seconds) == (0, 5, 10.0)
    assert found.bootstrap_failures is None


def test_the_role_of_a_server() -> None:
    plain = page('*max_total_num_tokens{engine_type="unified",tp_rank="0"} 1')
    assert handoff(window(None, plain), None).role is None
    assert (
        handoff(window(None, plain), None, ServerInfo("a:1", args={"disaggregation_mode": "decode"})).role == "decode"
    )
    assert handoff(window(None, plain), None, ServerInfo("a:1", args={"disaggregation_mode": "null"})).role is None
