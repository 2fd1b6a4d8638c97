"""Host memory, NUMA, and what the launch before this one was."""

from __future__ import annotations

from ranktop.demo.launch import Launch
from ranktop.demo.scenarios.scenario import Event, HostScript, Scenario

_NO_ROOM = (
    "ValueError: Not enough host memory for DSA indexer hierarchical cache. "
    "Requesting 0.01 GB but only have 0.00 GB free."
)

HOST = (
    Scenario(
        "indexer-surprise",
        "the host has room for what --hicache-size says, not for the indexer of the last rank",
        findings=("NUMA-NODE-FULL", "HOST-HEADROOM", "PLAN-HOST-GATE", "RANK-DEAD"),
        worst="critical",
        pools_made={7: 1},
        never_ready=True,
        host=HostScript(total_gb=1165.0),
        events=(Event(8.0, "exit", tp=7, text=_NO_ROOM),),
    ),
    Scenario(
        "node-full",
        "something else fills node 1 before the pools of its last rank are there",
        findings=("NUMA-NODE-FULL",),
        worst="critical",
        pools_made={7: 0},
        never_ready=True,
        host=HostScript(other_gb=220.0, other_on_node=1),
    ),
    Scenario(
        "host-pressure",
        "something else on the host grows and memory stalls",
        findings=("HOST-PRESSURE",),
        worst="warn",
        shows_after_seconds=60.0,
        host=HostScript(growth_gb_per_minute=2.0, pressure_percent=8.0, after_seconds=5.0),
    ),
    Scenario(
        "numa-remote",
        "31 % of TP5's pools lie on the other node",
        findings=("NUMA-REMOTE",),
        worst="warn",
        far_percent={5: 31.25},
    ),
    Scenario(
        "pod-oom",
        "the pod reaches its limit and the kernel kills TP5",
        findings=("HOST-OOM-KILL", "HOST-CGROUP", "RANK-DEAD"),
        worst="critical",
        shows_after_seconds=30.0,
        host=HostScript(pod_limit_gb=1200.0, growth_gb_per_minute=90.0),
        events=(Event(20.0, "oom_kill", tp=5),),
    ),
    Scenario(
        "leak",
        "TP2's heap grows by 1.2 GB an hour (give --speed 60)",
        findings=("HOST-ANON-LEAK",),
        worst="warn",
        shows_after_seconds=2400.0,
        events=(Event(30.0, "grow", tp=2, grow_bytes=10_000_000, every_seconds=30.0, times=180),),
    ),
    Scenario(
        "orphan",
        "a rank of an earlier server still holds GPU 2 and its pools",
        findings=("HBM-ORPHAN",),
        worst="breach",
        orphan=2,
    ),
    Scenario(
        "no-l2",
        "eight ranks without HiCache",
        launch=Launch(hicache_gb=None),
    ),
    Scenario(
        "rollback",
        "memory stalls under the pools, L2 is switched off, and the pressure returns to where it was",
        findings=("HOST-PRESSURE", "LAUNCH-CHANGED"),
        worst="warn",
        shows_after_seconds=72.0,
        host=HostScript(pressure_percent=8.0),
        relaunch="no-l2",
        relaunch_after_seconds=54.0,
    ),
    Scenario(
        "launch-changed",
        "the launch before this one had less than half of its L2",
        findings=("LAUNCH-CHANGED",),
        earlier_args=({"hicache_size": 0.02, "hicache_write_policy": "write_back"},),
    ),
)
