from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.kernel_messages import KernelMessages
from collectors.kernellog import KernelLogCollector, journal_events, parse_journal, parse_kmsg, parse_text
from ranktop.sample import NoData, Processes, RankProcess, RankTag, SourceError

CAUSE = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-ab.scope,mems_allowed=0-1,"
    "oom_memcg=/kubepods.slice/pod1.slice,task_memcg=/kubepods.slice/pod1.slice/a,b.scope,task=sglang::schedul,"
    "pid=4242,uid=0"
)
KILLED = (
    "Memory cgroup out of memory: Killed process 4242 (sglang::schedul) total-vm:1049023412kB, anon-rss:9000kB, "
    "file-rss:1000kB, shmem-rss:250396952kB, UID:0 pgtables:500000kB oom_score_adj:-997"
)


def only(text: str) -> tuple[str, dict[str, object]]:
    (event,) = parse_text(text, at_unix_seconds=5.0)
    return event.kind, event.fields


def test_an_oom_kill_in_a_cgroup_has_cause_and_sizes() -> None:
    kind, fields = only(f"{CAUSE}\nunrelated\n{KILLED}\n")
    assert kind == "oom_kill"
    assert fields == {
        "pid": 4242,
        "comm": "sglang::schedul",
        "memcg": True,
        "total_vm_bytes": 1049023412 * 1024,
        "anon_rss_bytes": 9000 * 1024,
        "file_rss_bytes": 1000 * 1024,
        "shmem_rss_bytes": 250396952 * 1024,
        "pgtables_bytes": 500000 * 1024,
        "constraint": "CONSTRAINT_MEMCG",
        "oom_memcg": "/kubepods.slice/pod1.slice",
        "task_memcg": "/kubepods.slice/pod1.slice/a,b.scope",
        "mems_allowed": "0-1",
        "nodemask": "(null)",
    }


def test_a_global_kill_without_its_cause() -> None:
    kind, fields = only(
        "Out of memory: Killed process 7 (python (x)) total-vm:5kB, anon-rss:0kB, file-rss:0kB, shmem-rss:4kB"
    )
    assert (kind, fields["memcg"], fields["shmem_rss_bytes"]) == ("oom_kill", False, 4096)
    assert "constraint" not in fields


def test_the_cause_of_another_victim_is_not_taken() -> None:
    kind, fields = only(f"{CAUSE.replace('pid=4242', 'pid=1')}\n{KILLED}")
    assert (kind, fields["pid"]) == ("oom_kill", 4242)
    assert "constraint" not in fields


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        (
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149",
            "xid",
            {"xid": 45, "pci_bus_id": "0000:dc:00.0", "pid": 1818990, "comm": "python3", "caused_by_xid": 149},
        ),
        (
            "NVRM: Xid (PCI:0000:3B:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "xid",
            {"xid": 79, "pci_bus_id": "0000:3b:00.0"},
        ),
        ("NVRM: Xid (PCI:0001:01:00): 31", "xid", {"xid": 31, "pci_bus_id": "0001:01:00.0"}),
        (
            "Tasks in /kubepods.slice/pod1 are going to be killed due to memory.oom.group set",
            "oom_group",
            {"memcg": "/kubepods.slice/pod1"},
        ),
        (
            "Cannot map memory with base addr 0x7f134c660000 and size of 0xf179a0 pages",
            "pin_failed",
            {"address": 0x7F134C660000, "pages": 0xF179A0, "size_bytes": 0xF179A0 * 4096},
        ),
        ("NVRM: GPU0 osCreateMemory: failed to allocate page table", "pin_failed", {}),
        (
            "NVRM: API mismatch: the client 'nvidia-smi' (pid 9)\nNVRM: has the version 595.71.05, but\n"
            "NVRM: this kernel module has the version 590.48.01.",
            "driver_mismatch",
            {"library_version": "595.71.05", "driver_version": "590.48.01"},
        ),
        (
            "INFO: task sglang::schedul:4242 blocked for more than 122 seconds.",
            "hung_task",
            {"comm": "sglang::schedul", "pid": 4242, "blocked_seconds": 122},
        ),
    ],
)
def test_messages(text: str, kind: str, fields: dict[str, object]) -> None:
    event = KernelMessages().event(text, 1.0)
    assert event is not None
    assert (event.kind, event.fields, event.at_unix_seconds) == (kind, fields, 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "usb 1-1: new device",
        "oom_reaper: reaped process 4242 (sglang::schedul), now anon-rss:0kB",
        "python3 invoked oom-killer: gfp_mask=0xcc0",
        "audit: a program printed 'Xid (PCI:0000:dc:00): 45'",
    ],
)
def test_messages_that_are_none(text: str) -> None:
    assert KernelMessages().event(text, 1.0) is None


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("03-glm52-ratio10-oomkill.log", ["oom_kill"]),
        ("12-hostregister-silent.log", ["pin_failed"]),
        ("80-xid-cascade.log", ["xid"] * 4),
    ],
)
def test_public_reports(shared: Path, name: str, kinds: list[str]) -> None:
    text = (shared / "cases" / "inputs" / name).read_text()
    assert [event.kind for event in parse_text(text, at_unix_seconds=0.0)] == kinds


XID = "NVRM: Xid (PCI:0000:dc:00): 45"


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The local zone as POSIX spells it, UTC by itself: no database of zones is needed."""
    monkeypatch.setenv("TZ", getattr(request, "param", "UTC0"))
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(
    ("line", "at"),
    [
        (f"[ 1000.500000] {XID}", 2000.5),
        (f"<3>[ 1000.500000] {XID}", 2000.5),
        (f"[Tue Aug 11 06:47:54 2026] {XID}", 1786430874.0),
        (f"Aug 11 06:47:54 host1 kernel: {XID}", 1786430874.0),
        (f"2026-08-11T06:47:54+00:00 host1 kernel: {XID}", 1786430874.0),
        (f"2026-08-11T08:47:54,250+0200 host1 kernel: {XID}", 1786430874.25),
        (f"kernel: {XID}", 1786440000.0),
        (f"[Xxx Aug 99 06:47:54 2026] {XID}", 1786440000.0),
        (f"[Mon Jan  1 00:00:00 0001] {XID}", 1786440000.0),
        (f"Dec 31 00:00:00 host1 kernel: {XID}", 1767139200.0),
    ],
)
def test_times_of_lines(line: str, at: float) -> None:
    (event,) = parse_text(line, at_unix_seconds=1786440000.0, boot_unix_seconds=1000.0)
    assert event.at_unix_seconds == at


@pytest.mark.parametrize("stamp", ["[12.5] ", "2026-11-29T14:03:27.120Z ", "[Sun Nov 29 14:03:27 2026] ", ""])
def test_a_message_is_told_without_the_stamp_of_its_line(stamp: str) -> None:
    message = "Out of memory: Killed process 4242 (sglang::schedul) total-vm:1kB, anon-rss:1kB"
    (event,) = parse_text(stamp + message, at_unix_seconds=0.0)
    assert event.text == message


@pytest.mark.parametrize("zone", ["MSK-3"], indirect=True)
@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(
    "line",
    [
        f"[Sun Nov 29 17:03:27 2026] {XID}",
        f"Nov 29 17:03:27 node-a kernel: {XID}",
        f"2026-11-29 17:03:27 {XID}",
        f"2026-11-29T14:03:27Z {XID}",
        f"2026-11-29T17:03:27+03:00 node-a kernel: {XID}",
    ],
)
def test_a_stamp_without_a_zone_is_this_machines(line: str) -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
    (event,) = parse_text(line, at_unix_seconds=now)
    assert event.at_unix_seconds == datetime(2026, 11, 29, 14, 3, 27, tzinfo=UTC).timestamp()


def test_journal_lines() -> None:
    entries = [
        {"__REALTIME_TIMESTAMP": "5000000", "MESSAGE": XID},
        {"__REALTIME_TIMESTAMP": "6000000", "MESSAGE": list(XID.encode() + b"\xff")},
        {"__REALTIME_TIMESTAMP": "7000000", "MESSAGE": None},
        {"MESSAGE": XID},
        ["no object"],
    ]
    lines = [json.dumps(entry).encode() for entry in entries]
    assert [event.at_unix_seconds for event in parse_journal([*lines, b"{broken", b""])] == [5.0, 6.0]


def test_the_journal_as_a_program(tmp_path: Path) -> None:
    program = tmp_path / "journalctl"
    line = json.dumps({"__REALTIME_TIMESTAMP": "5000000", "MESSAGE": XID})
    program.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/arguments\necho '{line}'\n")
    program.chmod(0o755)
    assert [event.kind for event in journal_events(boot=-1, since="-2h", command=str(program))] == ["xid"]
    assert (tmp_path / "arguments").read_text().split() == [
        "--dmesg",
        "--output=json",
        "--no-pager",
        "--boot=-1",
        "--since=-2h",
    ]
    program.write_text("#!/bin/sh\necho 'no persistent journal' >&2\nexit 1\n")
    with pytest.raises(NoData, match=r"no persistent journal.*systemd-journal"):
        journal_events(boot=-1, command=str(program))
    program.write_text("#!/bin/sh\necho 'Data from the specified boot (-1) is not available' >&2\nexit 1\n")
    with pytest.raises(NoData, match=r"is not available$"):
        journal_events(boot=-1, command=str(program))
    with pytest.raises(NoData, match="not installed"):
        journal_events(command=str(tmp_path / "none"))


def test_records_of_kmsg() -> None:
    assert parse_kmsg(b"3,1234,5000000,-;hello; world\n SUBSYSTEM=pci\n") == (5.0, "hello; world")
    assert parse_kmsg(b"no record") is None
    assert parse_kmsg(b"3,1,x,-;text") is None


def test_a_stream_of_records_names_the_rank_that_died(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kmsg")
    rank = RankProcess("127.0.0.1:30000", RankTag(tp=3), 4242, 1, "S")
    collector = KernelLogCollector(
        tmp_path / "kmsg", history_seconds=100.0, wall=lambda: 10_000.0, monotonic=lambda: 1_000.0
    )
    assert collector.read(Processes(ranks=(rank,)), 0.0) == ()
    writer = os.open(tmp_path / "kmsg", os.O_WRONLY)
    try:
        # A fifo joins what was not read yet; the device gives one record a read.
        events = []
        for record in (f"4,1,800000000,-;{XID}\n", f"4,2,990000000,-;{CAUSE}\n", f"3,3,990000001,-;{KILLED}\n"):
            os.write(writer, record.encode())
            events.extend(collector.read(Processes(), 0.0))
        (event,) = events
        assert (event.kind, event.server, event.rank) == ("oom_kill", "127.0.0.1:30000", "TP3")
        assert event.fields["constraint"] == "CONSTRAINT_MEMCG"
        assert event.at_unix_seconds == pytest.approx(9990.0, abs=0.01)
    finally:
        os.close(writer)


def test_this_kernels_own_log() -> None:
    collector = KernelLogCollector()
    try:
        collector.read(None, 0.0)
    except (NoData, SourceError) as reason:
        pytest.skip(str(reason))
    assert collector.read(None, 0.0) == ()


def test_no_log_and_no_permission(tmp_path: Path) -> None:
    with pytest.raises(NoData):
        KernelLogCollector(tmp_path / "none").read(None, 0.0)
    refused = KernelLogCollector(tmp_path)
    with pytest.raises(SourceError, match="CAP_SYSLOG") as caught:
        refused.read(None, 0.0)
    assert caught.value.code == "no_permission"


MANY_DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        f"NVRM: Xid (PCI:0000:dc:00): {MANY_DIGITS}",
        f"NVRM: Xid (PCI:0000:dc:00): 45, pid={MANY_DIGITS}, caused by previous Xid {MANY_DIGITS}",
        f"Out of memory: Killed process {MANY_DIGITS} (x) total-vm:{MANY_DIGITS}kB",
        f"Out of memory: Killed process 1 (x) total-vm:{MANY_DIGITS}kB",
        f"oom-kill:constraint=X,pid={MANY_DIGITS}",
        f"Cannot map memory with base addr 0x{MANY_DIGITS} and size of 0x{MANY_DIGITS} pages",
        f"INFO: task x:{MANY_DIGITS} blocked for more than {MANY_DIGITS} seconds",
        f"[{MANY_DIGITS}.1] NVRM: Xid (PCI:0000:dc:00): 45",
        f"4,1,{MANY_DIGITS},-;text",
        json.dumps({"__REALTIME_TIMESTAMP": "9" * 400, "MESSAGE": "x"}),
    ],
)
def test_numbers_that_no_kernel_writes(text: str) -> None:
    assert all(event.at_unix_seconds == 0.0 for event in parse_text(text, at_unix_seconds=0.0, boot_unix_seconds=0.0))
    assert parse_journal([text.encode()]) == []
    assert parse_kmsg(text.encode()) is None


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    parse_text(text, at_unix_seconds=0.0)
    parse_journal([text.encode("utf-8", "replace")])
    parse_kmsg(text.encode("utf-8", "replace"))
