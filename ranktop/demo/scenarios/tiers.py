"""L1, L2, L3 and speculation: reads that happen, that do not, and that are only claimed."""

from __future__ import annotations

from ranktop.demo.launch import RANKS, Launch
from ranktop.demo.scenarios.scenario import Event, GaugeOverride, Scenario
from ranktop.demo.traffic import Profile

_EAGLE = {"algorithm": "EAGLE", "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4}
_EMPTY_PREFETCH = (
    "HiCache prefetch success req=8f1d0c completed_local=0 completed_synced=0 matched=0 loaded=0 released=0 occupied=0"
)

TIERS = (
    Scenario(
        "l2-proven",
        "few long sessions: evicted from L1, read back from L2",
        findings=("L2-PROVEN",),
        shows_after_seconds=90.0,
        profile=Profile(sessions=4, turns=30),
    ),
    Scenario(
        "l2-never-read",
        "no prompt comes twice: L2 is written and never read",
        findings=("L2-NEVER-READ",),
        may_follow=("L2-WHY",),
        worst="warn",
        shows_after_seconds=660.0,
        profile=Profile(requests_per_second=1.2, turns=1, first_pages=3, shared_prefix=False),
    ),
    Scenario(
        "l2-phantom",
        "host hits are counted, nothing is loaded back",
        findings=("L2-PHANTOM-HIT",),
        worst="warn",
        shows_after_seconds=90.0,
        profile=Profile(load_back=False),
    ),
    Scenario(
        "gauge-lies",
        "hicache_host_total_tokens says a quarter more than the pools hold",
        findings=("L2-GAUGE-LIES",),
        worst="breach",
        gauges=(GaugeOverride("hicache_host_total_tokens", 1280),),
    ),
    Scenario(
        "prefetch-empty",
        "L3 is asked for every prefix and never has one",
        findings=("L3-PREFETCH-EMPTY",),
        worst="warn",
        shows_after_seconds=90.0,
        launch=Launch(extra=("--hicache-storage-backend", "mooncake")),
        args={"hicache_storage_backend": "mooncake"},
        # Ten in a minute are needed, and a node in a hurry logs a quarter of a minute at once.
        events=tuple(Event(3.0, "log", tp=tp, text=_EMPTY_PREFETCH, every_seconds=3.0) for tp in range(RANKS)),
    ),
    Scenario(
        "spec-collapse",
        "the acceptance length falls to half after two minutes",
        findings=("SPEC-COLLAPSE",),
        worst="breach",
        shows_after_seconds=300.0,
        launch=Launch(
            extra=tuple(
                word
                for name, value in _EAGLE.items()
                for word in (f"--speculative-{name.replace('_', '-')}", str(value))
            )
        ),
        args={f"speculative_{name}": value for name, value in _EAGLE.items()},
        gauges=(
            GaugeOverride("spec_accept_length", 2.81),
            GaugeOverride("spec_accept_rate", 0.603),
            GaugeOverride("spec_accept_length", 1.38, after_seconds=120.0),
            GaugeOverride("spec_accept_rate", 0.127, after_seconds=120.0),
        ),
    ),
)
