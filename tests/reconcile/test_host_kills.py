"""HOST-OOM-KILL: whose the victim was, what the limit was, who had grown."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ranktop.clock import iso_utc
from ranktop.sample import Sample, SourceState
from support import changes, samples
from support.changes import event, events, found, judge, moving, only, story

GB = 10**9

KILL: dict[str, Any] = {
    "pid": samples.pid_of(5),
    "comm": "sglang::schedul",
    "memcg": True,
    "anon_rss_bytes": 9 * GB,
    "shmem_rss_bytes": 144 * GB,
    "constraint": "CONSTRAINT_MEMCG",
    "oom_memcg": changes.POD,
    "task_memcg": f"{changes.POD}/container",
}


def test_a_kill_names_victim_constraint_limit_and_group() -> None:
    told = events(changes.cgroup(samples.healthy(1), oom_group=True), event("oom_kill", 0.5, rank="TP5", **KILL))
    finding = only(judge([changes.cgroup(samples.healthy(0)), told]), "HOST-OOM-KILL")
    assert (finding.severity, finding.ranks) == ("critical", ("TP5",))
    assert finding.evidence["constraint"] == "CONSTRAINT_MEMCG"
    assert (finding.evidence["limit_bytes"], finding.evidence["oom_group"]) == (1300 * GB, True)
    assert finding.evidence["shmem_rss_bytes"] == 144 * GB
    assert finding.evidence["grew_last_confidence"] == "unknown"
    assert finding.since == iso_utc(samples.START + 0.5), "the kernel's time, not that of the look"


def test_who_grew_last_is_not_the_victim() -> None:
    """TP2's heap takes what the host loses; TP5 is killed, being the largest of equals."""

    def growing(sample: Sample, at: int) -> Sample:
        sample = changes.host(sample, available_bytes=346 * GB - at * GB)
        sample = changes.ranks(sample, lambda rank: replace(rank, rss_anon_bytes=9 * GB + at * 9 * GB // 10), 2)
        return events(sample, event("oom_kill", 20, rank="TP5", **KILL)) if at == 20 else sample

    finding = only(judge(moving(20, growing)), "HOST-OOM-KILL")
    assert (finding.evidence["grew_last"], finding.evidence["grew_last_confidence"]) == ("TP2", "likely")
    assert finding.evidence["grew_last_bytes"] == 18 * GB
    later = [growing(samples.healthy(at), 20 if at == 20 else 21) for at in range(0, 600, 20)]
    story = [*moving(20, growing), *(replace(s, events=()) for s in later[2:])]
    assert only(judge(story), "HOST-OOM-KILL").evidence["grew_last"] == "TP2", "ten minutes later it is still known"


def test_pools_that_fill_are_what_grew() -> None:
    def filling(sample: Sample, at: int) -> Sample:
        filled = changes.ranks(sample, lambda rank: replace(rank, rss_shmem_bytes=at * GB))
        left = changes.host(filled, available_bytes=200 * GB - 8 * at * GB)
        return changes.loading(events(left, event("oom_kill", 20, rank="TP5", **KILL)) if at == 20 else left)

    finding = only(judge(moving(20, filling)), "HOST-OOM-KILL")
    assert finding.evidence["grew_last"] == f"the host pools of {samples.SERVER}"
    assert finding.evidence["grew_last_bytes"] == 160 * GB
    alone = only(judge([events(samples.healthy(1), event("oom_kill", 0.5, rank="TP5", **KILL))]), "HOST-OOM-KILL")
    assert alone.evidence["grew_last_bytes"] is None
    assert "was not seen" in alone.message


def test_a_kill_in_another_tenants_cgroup_is_no_alarm() -> None:
    other: dict[str, Any] = KILL | {
        "pid": 77,
        "oom_memcg": "/kubepods.slice/pod9",
        "task_memcg": "/kubepods.slice/pod9/c",
    }
    told = events(changes.cgroup(samples.healthy(1)), event("oom_kill", 0.5, **other))
    assert found(judge([told]), "HOST-OOM-KILL") == [("info", ())]
    blind = events(samples.healthy(1), event("oom_kill", 0.5, **other))
    assert found(judge([blind]), "HOST-OOM-KILL") == [("critical", ())], "whose cgroup it is cannot be told"


def test_a_kill_without_the_kernels_log_is_counted() -> None:
    counted = moving(3, lambda s, at: changes.host(s, oom_kill_count=4 + int(at >= 2)))
    finding = only(judge(counted), "HOST-OOM-KILL")
    assert finding.evidence["kills"] == 1
    assert "was not readable" in finding.message
    log = SourceState("kernellog", "ok", part="events")
    read = moving(
        3,
        lambda s, at: replace(changes.host(s, oom_kill_count=4 + int(at >= 2)), sources=(*s.sources, log)),
    )
    assert "has not named the victims yet" in only(judge(read), "HOST-OOM-KILL").message
    assert found(judge(story(3, lambda s: changes.host(s, oom_kill_count=4))), "HOST-OOM-KILL") == []


def test_kills_of_the_machine_under_a_simulated_host_are_not_its_own() -> None:
    """Between two stand-in nodes the machine's own counters show for a moment."""
    between = moving(
        4,
        lambda s, at: changes.host(
            s, oom_kill_count=3 if at == 2 else 0, source="measured" if at == 2 else "simulated"
        ),
    )
    verdicts = [judge(between[: number + 1]) for number in range(len(between))]
    assert [found(verdict, "HOST-OOM-KILL") for verdict in verdicts] == [[]] * len(between)


def test_an_old_kill_is_history() -> None:
    old = events(samples.healthy(1), event("oom_kill", -4000, **KILL))
    assert found(judge([old]), "HOST-OOM-KILL") == []
