"""The healthy node, and the two first faults."""

from __future__ import annotations

from ranktop.demo.scenarios.scenario import Event, Scenario

BASIC = (
    Scenario("healthy", "eight ranks within plan, traffic over L1 and L2"),
    Scenario(
        "pool-too-big",
        "TP3 maps 10 % more primary pool than planned",
        findings=("HOST-POOL-OVER",),
        may_follow=("L2-GAUGE-LIES",),
        worst="breach",
        primary_percent={3: 110},
    ),
    Scenario(
        "rank-dies",
        "TP5 ends a few seconds after ready, the others live on",
        findings=("RANK-DEAD",),
        worst="critical",
        events=(Event(4.0, "exit", tp=5, text="RuntimeError: the stand-in's scenario ends this rank"),),
    ),
)
