"""Pins are corroborated, contradicted or unknown; never proven for one rank."""

from __future__ import annotations

import pytest

from ranktop.reconcile.pins import judge_pins
from ranktop.sample import Host

GB = 10**9


def host(net_pages: int | None) -> Host:
    return Host(
        foll_pin_acquired_pages=None if net_pages is None else 1000 + net_pages,
        foll_pin_released_pages=None if net_pages is None else 1000,
    )


@pytest.mark.parametrize(
    ("net_pages", "has_driver", "loading", "verdict"),
    [
        (250_000, True, False, "corroborated"),  # 1.02 GB pinned for 1 GB mapped
        (220_000, True, False, "corroborated"),  # 0.901: torch and RDMA may add, nothing may lack more
        (219_000, True, False, "contradicted"),  # 0.897
        (0, True, False, "unknown"),  # a driver whose pins do not count
        (250_000, False, False, "unknown"),
        (100_000, True, True, "unknown"),
        (None, True, False, "unknown"),
    ],
)
def test_verdict(net_pages: int | None, has_driver: bool, loading: bool, verdict: str) -> None:
    pins = judge_pins(host(net_pages), GB, has_driver=has_driver, loading=loading)
    assert pins.verdict == verdict
    assert pins.reason


def test_nothing_to_pin_is_unknown() -> None:
    assert judge_pins(host(10), 0, has_driver=True, loading=False).verdict == "unknown"
    assert judge_pins(None, GB, has_driver=True, loading=False).outstanding_bytes is None
