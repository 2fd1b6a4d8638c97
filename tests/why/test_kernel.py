"""Kills that the kernel's log tells."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from collectors.simulated import DemoStates
from ranktop.clock import iso_utc
from ranktop.demo.state import write_state
from ranktop.plan import parse_launch
from ranktop.sample import Gpus, Host, Processes, ServerProcess
from ranktop.sample.demo_state import DemoState
from ranktop.why.kernel import simulated_logs
from why.node import (
    CAUSE,
    CONTAINER,
    GIB,
    KILLED,
    NOW,
    POD,
    cgroup,
    claim,
    events,
    journal_command,
    judged,
    nowhere,
    only_death,
    proc,
)

PLAIN = "Out of memory: Killed process 1635676 (sglang::schedul) total-vm:1049023412kB, shmem-rss:250396952kB"


def test_a_cgroup_kill_of_this_boot(tmp_path: Path) -> None:
    """Constraint and limit are proven: the kernel names the cgroup, and its limit is still there."""
    command = journal_command(tmp_path, {0: [(NOW - 60, CAUSE), (NOW - 60, KILLED)]})
    cgroup(tmp_path / "sys", POD, memory_max=400 * GIB, memory_events=events(2, 1), memory_peak=399 * GIB)
    where = replace(nowhere(tmp_path), journal_command=command, sys_root=str(tmp_path / "sys"))
    death = only_death(judged(where))
    assert (death.cause, death.pids, death.at_unix_seconds) == ("out of memory", (4242,), NOW - 60)
    assert "144.15 GB of shared memory" in claim(death, "victim").text
    assert claim(death, "constraint").text == f"the memory limit of cgroup /{POD}"
    limit = claim(death, "limit")
    assert (limit.evidence["limit_bytes"], limit.certainty) == (400 * GIB, "proven")
    assert claim(death, "planned").certainty == "unknown"
    assert claim(death, "grew_last").certainty == "unknown"


def test_a_kill_of_the_last_boot(tmp_path: Path) -> None:
    command = journal_command(tmp_path, {-1: [(NOW - 3000, KILLED)], 0: [(NOW - 60, "usb 1-1: new device")]})
    death = only_death(judged(replace(nowhere(tmp_path), journal_command=command)))
    assert claim(death, "victim").source == "kernel journal of the last boot"
    assert claim(death, "limit").certainty == "unknown"


def test_a_kill_before_since_is_not_told(tmp_path: Path) -> None:
    command = journal_command(tmp_path, {0: [(NOW - 7300, KILLED)]})
    assert judged(replace(nowhere(tmp_path), journal_command=command)).deaths == ()


def test_one_kill_in_two_sources_is_one_death(tmp_path: Path) -> None:
    """The journal has the cause, a saved dmesg only the victim: the one with the constraint is kept."""
    command = journal_command(tmp_path, {0: [(NOW - 60, CAUSE), (NOW - 60, KILLED)], -1: [(NOW - 62, KILLED)]})
    death = only_death(judged(replace(nowhere(tmp_path), journal_command=command)))
    assert claim(death, "constraint").certainty == "proven"
    assert POD in claim(death, "constraint").text


def test_a_whole_group_that_died_together_is_one_death(tmp_path: Path) -> None:
    """memory.oom.group: the kernel names the constraint once, then ends all ranks within a second."""
    others = [KILLED.replace("4242", str(4243 + tp)).replace("8000000kB", f"{8000001 + tp}kB") for tp in range(7)]
    group = f"Tasks in /{POD} are going to be killed due to memory.oom.group set"
    messages = [(NOW - 60, CAUSE), (NOW - 60, KILLED), (NOW - 60, group), *((NOW - 59.5, kill) for kill in others)]
    command = journal_command(tmp_path, {0: messages})
    death = only_death(judged(replace(nowhere(tmp_path), journal_command=command)))
    assert death.pids == tuple(range(4242, 4250))
    assert death.title == "the kernel killed pid 4242 (sglang::schedul) and 7 more"
    assert claim(death, "group").certainty == "proven"
    assert len(claim(death, "victim").evidence["processes"]) == 8


def test_kills_of_two_cgroups_are_two_deaths(tmp_path: Path) -> None:
    messages = [(NOW - 60, CAUSE), (NOW - 60, KILLED)]
    messages += [(at + 5, text.replace("0a1b2c3d", "99999999").replace("4242", "77")) for at, text in messages]
    command = journal_command(tmp_path, {0: messages})
    found = judged(replace(nowhere(tmp_path), journal_command=command))
    assert [death.pids for death in found.deaths] == [(77,), (4242,)]


def test_the_limit_of_a_binding_is_its_nodes_memory(tmp_path: Path) -> None:
    log = tmp_path / "dmesg"
    cause = "oom-kill:constraint=CONSTRAINT_MEMORY_POLICY,nodemask=1,mems_allowed=0-1,task=x,pid=1635676,uid=0\n"
    log.write_text(f"{cause}{PLAIN}\n")
    where = replace(nowhere(tmp_path), kernel_log=log, sys_root=str(tmp_path / "sys"))
    assert claim(only_death(judged(where)), "limit").certainty == "unknown"
    for node in (0, 1):
        folder = tmp_path / "sys" / "devices" / "system" / "node" / f"node{node}"
        folder.mkdir(parents=True)
        (folder / "meminfo").write_text(f"Node {node} MemTotal:       {450000000 + node} kB\n")
    assert claim(only_death(judged(where)), "limit").evidence == {"limit_bytes": 450000001 * 1024}


def test_without_the_kernels_log_its_count_is_told(tmp_path: Path) -> None:
    proc(tmp_path / "proc")
    found = judged(replace(nowhere(tmp_path), proc_root=str(tmp_path / "proc")))
    assert found.deaths == ()
    assert [death.title.split(";")[0] for death in found.others] == ["2 kills for memory since boot"]


def test_another_programs_kill_is_no_death_of_sglang(tmp_path: Path) -> None:
    log = tmp_path / "dmesg"
    log.write_text("Out of memory: Killed process 77 (stress) total-vm:1kB, anon-rss:1kB, shmem-rss:0kB\n")
    found = judged(replace(nowhere(tmp_path), kernel_log=log))
    assert found.deaths == ()
    assert [death.pids for death in found.others] == [(77,)]


@pytest.mark.parametrize(
    ("cause", "said", "certainty"),
    [
        ("CONSTRAINT_NONE", "the host's memory", "proven"),
        ("CONSTRAINT_CPUSET", "cpuset were full (nodes 0-1)", "proven"),
        ("CONSTRAINT_MEMORY_POLICY", "a NUMA node that the victim is bound to", "proven"),
        (None, "no cgroup's limit", "likely"),
    ],
)
def test_constraint(tmp_path: Path, cause: str | None, said: str, certainty: str) -> None:
    log = tmp_path / "dmesg"
    before = f"oom-kill:constraint={cause},nodemask=(null),mems_allowed=0-1,task=x,pid=1635676,uid=0\n" if cause else ""
    log.write_text(f"{before}{PLAIN}\n")
    found = claim(only_death(judged(replace(nowhere(tmp_path), kernel_log=log))), "constraint")
    assert said in found.text
    assert found.certainty == certainty


def test_the_plan_is_held_against_the_limit(tmp_path: Path) -> None:
    """8 ranks x 144.15 GB of the given launch against MemTotal of this host."""
    log = tmp_path / "dmesg"
    log.write_text(f"{PLAIN}\n")
    proc(tmp_path / "proc")
    launch = parse_launch(
        "sglang serve --model-path zai-org/GLM-5.2-FP8 --tp 8 --kv-cache-dtype fp8_e4m3 --enable-hierarchical-cache "
        "--hicache-size 120"
    )
    where = replace(nowhere(tmp_path), kernel_log=log, launch=launch, proc_root=str(tmp_path / "proc"))
    planned = claim(only_death(judged(where)), "planned")
    assert planned.evidence["total_bytes"] == 1153176121344
    assert planned.text.endswith("76 % of the limit")
    assert (planned.certainty, planned.source) == ("likely", "--launch")


@pytest.mark.shared
def test_case_03(tmp_path: Path, shared: Path) -> None:
    """226.06 + 45.49 GB a rank on 4 ranks, 1086 GB in all; the victim held 256 GB of shared memory."""
    log = shared / "cases" / "inputs" / "03-glm52-ratio10-oomkill.log"
    launch = parse_launch(
        "sglang serve --model-path zai-org/GLM-5.2 --tp 4 --kv-cache-dtype fp8_e4m3 --disaggregation-mode decode "
        "--enable-hierarchical-cache --hicache-ratio 10"
    )
    death = only_death(judged(replace(nowhere(tmp_path), logs=(log,), launch=launch)))
    assert (death.cause, death.pids) == ("out of memory", (1635676,))
    assert "256.41 GB of shared memory" in claim(death, "victim").text
    planned = claim(death, "planned")
    assert planned.text.startswith("4 ranks x 271.55 GB = 1086.20 GB of host pools")
    assert planned.certainty == "likely"


@pytest.mark.shared
def test_case_80(tmp_path: Path, shared: Path) -> None:
    """Four processes ended with XID 45; the driver names XID 145 and 149 as what they follow from."""
    log = shared / "cases" / "inputs" / "80-xid-cascade.log"
    death = only_death(judged(replace(nowhere(tmp_path), kernel_log=log)))
    assert (death.cause, death.pids) == ("GPU fault", (1818987, 1818989, 1818990, 1818992))
    assert claim(death, "root").evidence == {"xids": [145, 149]}


def test_an_xid_with_a_process_is_a_likely_death(tmp_path: Path) -> None:
    log = tmp_path / "dmesg"
    log.write_text("NVRM: Xid (PCI:0000:dc:00): 31, pid=4242, name=sglang::schedul, Ch 00000001, MMU Fault\n")
    death = only_death(judged(replace(nowhere(tmp_path), kernel_log=log)))
    assert (death.pids, claim(death, "victim").certainty) == ((4242,), "likely")


def test_an_xid_that_ended_no_process_is_no_death(tmp_path: Path) -> None:
    log = tmp_path / "dmesg"
    log.write_text("NVRM: Xid (PCI:0000:dc:00): 63, pid='<unknown>', Row Remapper: New row\n")
    assert judged(replace(nowhere(tmp_path), kernel_log=log)).deaths == ()


def test_the_container_of_the_kill_is_not_told_twice(tmp_path: Path) -> None:
    """The victim's own cgroup counts the kill too: it is support for the kernel's word, no second death."""
    log = tmp_path / "dmesg"
    log.write_text(f"{CAUSE}\n{KILLED}\n")
    cgroup(tmp_path / "sys", CONTAINER, memory_events=events(0, 1))
    cgroup(tmp_path / "sys", POD, memory_events=events(1, 1), memory_max=400 * GIB)
    found = judged(replace(nowhere(tmp_path), kernel_log=log, sys_root=str(tmp_path / "sys")))
    assert only_death(found).pids == (4242,)


@pytest.mark.parametrize(("is_there", "states"), [(True, ["read"]), (False, ["absent"])])
def test_a_stand_in_tells_its_kills_itself(tmp_path: Path, is_there: bool, states: list[str]) -> None:
    lines = (f"2001-01-01T00:00:00Z {PLAIN}", f"{iso_utc(time.time() - 5.0)} {PLAIN}")
    path = tmp_path / "state.json"
    if is_there:
        write_state(path, DemoState(1.0, "pod-oom", Host(), (), Gpus(), {}, kernel_lines=lines))
    seen = Processes((ServerProcess("127.0.0.1:1", os.getpid(), 1, demo_state_path=str(path)),), ())
    logs, readings = simulated_logs(seen, DemoStates(), time.time() - 3600.0)
    assert [reading.state for reading in readings] == states
    assert [event.kind for log in logs for event in log.events] == ["oom_kill"] * is_there
