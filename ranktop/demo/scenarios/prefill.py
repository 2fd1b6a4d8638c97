"""Prefill workers of a disaggregated server, and LayerSplit."""

from __future__ import annotations

from ranktop.demo.launch import RANKS, Launch
from ranktop.demo.scenarios.scenario import Event, GaugeOverride, Scenario
from ranktop.demo.traffic import Profile

_PREFILL = ("--disaggregation-mode", "prefill")
_SPLIT = (
    *_PREFILL,
    *("--enable-prefill-cp", "--cp-strategy", "interleave"),
    *("--enable-dsa-cache-layer-split", "--hicache-mem-layout", "layer_first"),
)
_SPLIT_ARGS: dict[str, object] = {
    "disaggregation_mode": "prefill",
    "enable_prefill_cp": True,
    "cp_strategy": "interleave",
    "enable_dsa_cache_layer_split": True,
    "hicache_mem_layout": "layer_first",
}
_RETRIES = tuple(
    Event(2.0 + attempt, "log", tp=3, text=f"Prefill register attempt {attempt}/5 failed") for attempt in range(1, 6)
)
_GIVES_UP = Event(8.0, "log", tp=3, text="Prefill instance failed to register to bootstrap server after 5 retries")

PREFILL = (
    Scenario(
        "pd-rank-missing",
        "TP3 never registers with the bootstrap server",
        findings=("PD-RANK-MISSING",),
        worst="breach",
        launch=Launch(extra=_PREFILL),
        args={"disaggregation_mode": "prefill"},
        profile=Profile(prefill_only=True),
        unregistered=frozenset({3}),
        events=(*_RETRIES, _GIVES_UP),
    ),
    Scenario(
        "pd-stuck",
        "requests wait in the bootstrap queue and nothing moves",
        findings=("PD-STUCK",),
        may_follow=("METRICS-STALE", "SERVER-HUNG"),
        worst="critical",
        shows_after_seconds=60.0,
        launch=Launch(extra=_PREFILL),
        args={"disaggregation_mode": "prefill"},
        profile=Profile(prefill_only=True),
        gauges=(GaugeOverride("num_prefill_bootstrap_queue_reqs", 6, after_seconds=18.0),),
        hangs_after_seconds=20.0,
    ),
    Scenario(
        "cp1-fallback",
        "LayerSplit is asked for, and one rank keeps all layers",
        findings=("LAYER-CP1",),
        worst="breach",
        launch=Launch(extra=_SPLIT, tp_size=1),
        args=_SPLIT_ARGS | {"tp_size": 1, "attn_cp_size": 1},
        profile=Profile(prefill_only=True),
    ),
    Scenario(
        "layer-overlap",
        "TP4 logs a layer range that begins one layer early",
        findings=("LAYER-RANGE",),
        worst="breach",
        launch=Launch(extra=_SPLIT),
        args=_SPLIT_ARGS | {"attn_cp_size": RANKS},
        profile=Profile(prefill_only=True),
        layers_early={4: 1},
    ),
)
