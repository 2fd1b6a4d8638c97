"""Launches one after the other, and values that must be the same between ranks and roles."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler
from ranktop.reconcile.launches import KEPT, Launch, before_of, changes, extend
from ranktop.sample import Event, Sample, ServerInfo
from support import samples
from tests.reconcile.tier_story import at, found, judge, severities, with_info

BOOT = samples.START - 8000
STARTED = BOOT + 1
"""The main process began 100 ticks after boot."""
ARGS = {"tp_size": 8, "hicache_size": 120, "hicache_write_policy": "write_through", "random_seed": 7}


def running(sample: Sample | None = None, **args: Any) -> Sample:
    return with_info(sample or samples.healthy(), **(ARGS | args))


def server_args(args: dict[str, Any], second: float) -> Event:
    return Event(second, "server_args", "server started", samples.SERVER, fields={"args": args})


def test_a_launch_that_differs_from_the_one_remembered() -> None:
    before = Launch(samples.SERVER, STARTED - 86_400, "0.5.17", ARGS | {"hicache_size": 64}, host_hit=0.31)
    sample = running(at(0, {"input": 300, "device": 600, "host": 100}))
    (finding,) = found(Reconciler(launches=[before]).update(sample), "LAUNCH-CHANGED")
    assert finding.severity == "info"
    assert finding.evidence["changes"] == [
        {"name": "hicache_size", "before": 64, "after": 120},
        {"name": "version", "before": "0.5.17", "after": "0.5.18"},
    ]
    assert finding.evidence["before"] == {"host_hit": 0.31}
    assert finding.evidence["after"]["host_hit"] == 0.1
    assert finding.evidence["after"]["host_available_bytes"] == 346 * 10**9


def test_a_launch_that_only_its_log_remembers() -> None:
    events = (
        server_args(ARGS | {"hicache_write_policy": "write_back", "random_seed": 99}, STARTED - 500),
        server_args(ARGS, STARTED + 20),
    )
    (finding,) = found(judge(replace(running(), events=events)), "LAUNCH-CHANGED")
    assert [change["name"] for change in finding.evidence["changes"]] == ["hicache_write_policy"]


@pytest.mark.parametrize(
    ("known", "events"),
    [
        pytest.param([Launch(samples.SERVER, STARTED - 86_400, "0.5.18", ARGS)], (), id="the same launch again"),
        pytest.param([], (server_args(ARGS | {"tp_size": 4}, STARTED + 20),), id="no launch before this one"),
        pytest.param([Launch("b:2", STARTED - 86_400, "0.5.17", {})], (), id="another server's launch"),
        pytest.param([Launch(samples.SERVER, STARTED + 1, "0.5.18", ARGS)], (), id="the present one, remembered"),
    ],
)
def test_nothing_changed(known: list[Launch], events: tuple[Event, ...]) -> None:
    verdict = Reconciler(launches=known).update(replace(running(), events=events))
    assert severities(verdict, "LAUNCH-CHANGED") == []


def test_without_arguments_there_is_nothing_to_compare() -> None:
    before = Launch(samples.SERVER, STARTED - 86_400, "0.5.17", ARGS)
    assert severities(Reconciler(launches=[before]).update(samples.healthy()), "LAUNCH-CHANGED") == []


def test_a_remembered_launch_is_not_told_a_second_time_by_the_log() -> None:
    """The log writes its arguments some seconds after the process began: the same launch, without its figures."""
    remembered = Launch(samples.SERVER, STARTED - 3600, args=ARGS, host_hit=0.2)
    now = Launch(samples.SERVER, STARTED, args=ARGS)
    assert before_of([remembered], [server_args(ARGS, STARTED - 3580)], now) == remembered
    later, own = server_args(ARGS | {"tp_size": 4}, STARTED - 1000), server_args(ARGS, STARTED + 20)
    for starts in ([later], [later, own]):
        told = before_of([remembered], starts, now)
        assert told is not None
        assert told.args["tp_size"] == 4
    assert before_of([], [own], now) is None


def test_the_state_that_a_run_leaves_behind() -> None:
    reconciler = Reconciler()
    reconciler.update(running(at(0, {"input": 300, "device": 600, "host": 100})))
    reconciler.update(running(replace(samples.healthy(5), metrics={})))
    (launch,) = reconciler.launches
    assert (launch.server, launch.version, launch.host_hit) == (samples.SERVER, "0.5.18", 0.1), "kept while unread"
    again = msgspec.json.decode(msgspec.json.encode(launch), type=Launch)
    assert again == launch
    assert changes(launch, again) == ()


def test_only_so_many_launches_are_kept() -> None:
    known: tuple[Launch, ...] = ()
    for number in range(KEPT + 5):
        known = extend(known, Launch("a:1", 1000.0 * number))
    assert len(known) == KEPT
    assert known[-1].started_unix_seconds == 1000.0 * (KEPT + 4)
    assert len(extend(known, replace(known[-1], version="0.5.18"))) == KEPT


def test_what_a_log_spells_otherwise_than_json_is_the_same() -> None:
    one = Launch("a:1", 0.0, args={"numa_node": (0, 1), "extra": {"a": 1}, "seen": 1})
    other = Launch("a:1", 9.0, args={"numa_node": [0, 1], "extra": {"a": 1}, "unseen": 1})
    assert changes(one, other) == ()


def pool(tp: int, dtype: str, label: str | None = None) -> Event:
    fields = {"dtype": dtype, "tokens": 432_000} | ({"label": label} if label else {})
    return Event(samples.START, "l1_pool", "KV Cache is allocated.", samples.SERVER, f"TP{tp}", fields)


@pytest.mark.parametrize(
    ("events", "ranks"),
    [
        pytest.param([pool(tp, "fp8" if tp != 3 else "bf16") for tp in range(8)], ("TP3",), id="one rank in bf16"),
        pytest.param([pool(tp, "fp8") for tp in range(8)], (), id="all the same"),
        pytest.param([pool(0, "bf16", "draft"), *(pool(tp, "fp8") for tp in range(8))], (), id="the draft's own"),
        pytest.param([], (), id="no line"),
    ],
)
def test_ranks_of_one_server(events: list[Event], ranks: tuple[str, ...]) -> None:
    verdict = judge(replace(samples.healthy(), events=tuple(events)))
    assert tuple(rank for finding in found(verdict, "LAUNCH-DRIFT") for rank in finding.ranks) == ranks


def roles(name: str = "GLM", **decode: Any) -> Sample:
    shared = {"model_path": "zai-org/GLM-5.2-FP8", "tp_size": 8, "page_size": 64, "kv_cache_dtype": "fp8_e4m3"}
    infos = {
        "a:1": ("GLM", shared | {"disaggregation_mode": "prefill"}),
        "b:2": (name, shared | {"disaggregation_mode": "decode"} | decode),
    }
    told = {
        server: ServerInfo(server, version="0.5.18", args=args, served_model_name=served, is_ready=True)
        for server, (served, args) in infos.items()
    }
    return replace(samples.healthy(), processes=None, metrics={}, sources=(), infos=told)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        pytest.param(roles(kv_cache_dtype="bfloat16"), ["breach"], id="another KV dtype"),
        pytest.param(roles(revision="main"), [], id="one side does not tell"),
        pytest.param(roles(tp_size=4, hicache_size=32), [], id="sizes may differ"),
        pytest.param(roles("Qwen", page_size=1), [], id="two deployments"),
        pytest.param(roles(disaggregation_mode="prefill", page_size=1), [], id="two prefill servers"),
    ],
)
def test_roles_of_one_deployment(sample: Sample, expected: list[str]) -> None:
    assert severities(judge(sample), "LAUNCH-DRIFT") == expected
