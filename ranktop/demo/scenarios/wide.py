"""A scenario on a larger host: more GPUs, a rank on each, memory in proportion."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.demo.launch import RANKS
from ranktop.demo.scenarios.scenario import Scenario

WIDTHS = (16, 32, 64)
"""Tensor parallel sizes that divide GLM-5.2's 64 heads."""


def widened(scenario: Scenario, ranks: str) -> Scenario | None:
    """The scenario with so many ranks. None: no such number, or it is about how its eight ranks are laid out."""
    launch = scenario.launch
    if ranks not in map(str, WIDTHS) or launch.tp_size != RANKS or launch.extra:
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
