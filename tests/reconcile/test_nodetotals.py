"""A node's shares and rates from those of its servers."""

from __future__ import annotations

import pytest

from ranktop.reconcile.nodetotals import node_tiers, node_transfers
from ranktop.reconcile.verdict import ServerVerdict, TierShares, TransferRates


def server(name: str, tiers: TierShares | None = None, transfers: TransferRates | None = None) -> ServerVerdict:
    return ServerVerdict(
        name, None, None, None, None, None, 1, tiers=tiers or TierShares(), transfers=transfers or TransferRates()
    )


def shares(device: float | None, miss: float, tokens: int, seconds: float | None = 10.0) -> TierShares:
    return TierShares(device, 0.0 if device is not None else None, None, miss, "reported", tokens, seconds)


def test_shares_are_weighted_by_tokens() -> None:
    node = node_tiers([server("a", shares(0.9, 0.1, 300)), server("b", shares(0.1, 0.9, 100))])
    assert (node.device_hit, node.miss) == (pytest.approx(0.7), pytest.approx(0.3))
    assert (node.window_tokens, node.window_seconds) == (400, 10.0)


def test_a_server_that_does_not_tell_a_share_does_not_count_as_none_of_it() -> None:
    node = node_tiers([server("a", shares(0.8, 0.2, 100)), server("b", shares(None, 0.4, 300))])
    assert node.device_hit == pytest.approx(0.8)
    assert node.storage_hit is None, "nobody tells it"
    assert node.miss == pytest.approx(0.35)


def test_a_share_since_the_start_has_no_window() -> None:
    assert node_tiers([server("a", shares(0.8, 0.2, 100, None))]).window_seconds is None
    both = node_tiers([server("a", shares(0.8, 0.2, 100, None)), server("b", shares(0.8, 0.2, 100))])
    assert both.window_seconds is None


def test_without_traffic_the_first_server_speaks() -> None:
    idle = TierShares(source="reported", window_tokens=0, window_seconds=5.0, detail="no prefill in the window")
    assert node_tiers([server("a", idle), server("b", idle)]) == idle
    assert node_tiers([]).detail == "no server"


def test_rates_add_up_over_those_that_tell() -> None:
    node = node_transfers(
        [server("a", transfers=TransferRates(1.0, 2.0, None, "reported")), server("b", transfers=TransferRates(4.0))]
    )
    assert node == TransferRates(5.0, 2.0, None, "reported")
