"""A scenario on a larger host: more GPUs, a rank on each, memory in proportion."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.demo.launch import RANKS
from ranktop.demo.scenarios.scenario import Scenario

WIDTHS = (16, 32, 64)
"""Tensor parallel sizes that divide GLM-5.2's 64 heads."""


def widths_of(scenario: Scenario) -> tuple[int, ...]:
    """How many ranks it can have beside its eight; none where it is about how these are laid out."""
    launch = scenario.launch
    return WIDTHS if launch.tp_size == RANKS and not launch.extra else ()


def widened(scenario: Scenario, ranks: str) -> Scenario | None:
    """The scenario with so many ranks, None where it can't have these."""
    launch = scenario.launch
    if ranks not in map(str, widths_of(scenario)):
        return None
    times = int(ranks) // RANKS
    host = scenario.host
    pod = host.pod_limit_gb
    return replace(
        scenario,
        launch=launch._replace(tp_size=int(ranks)),
        host=replace(
            host,
            total_gb=host.total_gb * times,
            other_gb=host.other_gb * times,
            growth_gb_per_minute=host.growth_gb_per_minute * times,
            pod_limit_gb=pod * times if pod is not None else None,
        ),
    )
