"""What is seen, and a server that no longer moves."""

from __future__ import annotations

from ranktop.demo.launch import Launch
from ranktop.demo.scenarios.scenario import Scenario

WATCHING = (
    Scenario(
        "metrics-rank0",
        "only rank 0 reports gauges",
        findings=("METRICS-RANK0-ONLY",),
        launch=Launch(all_schedulers=False),
    ),
    Scenario(
        "server-hung",
        "requests arrive, no batch runs any more",
        findings=("SERVER-HUNG",),
        may_follow=("METRICS-STALE",),
        worst="critical",
        shows_after_seconds=100.0,
        hangs_after_seconds=15.0,
    ),
)
