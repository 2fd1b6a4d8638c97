"""Lines become events: tracebacks over many of them, partial ones, time zones, floods."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collectors.serverlog_events import MAX_EVENTS, LogAssembler
from tests.collectors.log_files import UNIT_A

TRACEBACK = """[2026-11-29 09:01:52 TP6] Scheduler hit an exception: Traceback (most recent call last):
  File "scheduler.py", line 5048, in run_scheduler_process
    scheduler = Scheduler(
[2026-11-29 09:01:52 TP7] The other rank says something.
    raise ValueError(
ValueError: Not enough host memory available. Requesting 120.00 GB but only have 115.10 GB free. Please reduce.
[2026-11-29 09:01:53 TP0] Try to allocate 5 tokens."""


def test_a_traceback_keeps_its_rank_through_other_lines() -> None:
    assembler = LogAssembler("a:1")
    assembler.feed(TRACEBACK.splitlines(), 0.0)
    failed, traceback, other = assembler.take()
    assert (failed.kind, failed.rank, failed.fields["asked_gb"]) == ("host_pool_failed", "TP6", 120.0)
    assert (traceback.kind, traceback.rank) == ("traceback", "TP6")
    assert (traceback.fields["error_type"], traceback.fields["process"]) == ("ValueError", "Scheduler")
    assert len(traceback.fields["lines"]) == 4
    assert (other.kind, other.rank) == ("out_of_memory", "TP0")


def test_a_traceback_without_an_end_is_told_when_the_next_begins() -> None:
    head = TRACEBACK.splitlines()[0]
    assembler = LogAssembler("a:1")
    assembler.feed([head, "  File x", head.replace("TP6", "TP5"), "  File y", "KeyError: 'z'"], 0.0)
    first, second = assembler.take()
    assert (first.rank, first.fields["error_type"]) == ("TP6", None)
    assert (second.rank, second.fields["error_type"]) == ("TP5", "KeyError")


def test_partial_lines_of_a_container_are_joined() -> None:
    assembler = LogAssembler("a:1")
    whole = UNIT_A.format(3, 64)
    assembler.feed(
        [
            f"2026-11-29T07:00:00.5Z stdout P {whole[:30]}",
            f"2026-11-29T07:00:00.5Z stdout P {whole[30:40]}",
            f"2026-11-29T07:00:00.5Z stdout F {whole[40:]}",
        ],
        0.0,
    )
    (event,) = assembler.take()
    assert (event.rank, event.at_unix_seconds) == ("TP3", datetime(2026, 11, 29, 7, 0, 0, 500_000, UTC).timestamp())


def test_partial_lines_of_two_streams_are_not_mixed() -> None:
    assembler = LogAssembler("a:1")
    out, err = UNIT_A.format(3, 64), UNIT_A.format(4, 65)
    assembler.feed(
        [
            f"2026-11-29T07:00:00Z stdout P {out[:30]}",
            f"2026-11-29T07:00:00Z stderr P {err[:30]}",
            f"2026-11-29T07:00:00Z stdout F {out[30:]}",
            f"2026-11-29T07:00:00Z stderr F {err[30:]}",
        ],
        0.0,
    )
    assert [event.rank for event in assembler.take()] == ["TP3", "TP4"]


def test_the_second_line_of_a_record_is_of_the_same_rank() -> None:
    assembler = LogAssembler("a:1")
    assembler.feed(
        [
            "[2026-11-29 09:02:31 TP3] Prefill out of memory. Try to lower your batch size.",
            "Try to allocate 8192 tokens.",
            "[2026-11-29 09:02:32 TP5] Attach HiCache storage backend failed with exception.",
            "Traceback (most recent call last):",
            "  File x",
            "KeyError: 'z'",
            "W20250516 09:00:52.240088 45697 topology.cpp:55] No RDMA devices found, check your device installation",
        ],
        0.0,
    )
    assert [(event.kind, event.rank) for event in assembler.take()] == [
        ("out_of_memory", "TP3"),
        ("out_of_memory", "TP3"),
        ("traceback", "TP5"),
        ("transport", None),
    ]


def test_a_chained_exception_is_one_traceback() -> None:
    assembler = LogAssembler("a:1")
    text = """[2026-11-29 09:02:31 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File a
KeyError: 'z'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File b
RuntimeError: cudaHostRegister failed (rc=1, invalid argument) for ptr=0x1 size=5"""
    assembler.feed(text.splitlines(), 0.0)
    pin, traceback = assembler.take()
    assert (pin.kind, pin.rank) == ("pin_failed", "TP3")
    assert (traceback.fields["error_type"], len(traceback.fields["lines"])) == ("RuntimeError", 6)


@pytest.mark.parametrize("hours", [-8, 0, 5.75])
def test_the_zone_comes_from_when_the_file_was_written(hours: float) -> None:
    written = datetime(2026, 11, 29, 9, 2, 32, 300_000, UTC).timestamp() - hours * 3600
    assembler = LogAssembler("a:1")
    assembler.set_zone(UNIT_A.format(0, 1), written)
    assembler.feed([UNIT_A.format(0, 1)], 0.0)
    (event,) = assembler.take()
    assert event.at_unix_seconds == pytest.approx(written, abs=2)


def test_an_old_copy_of_a_file_says_nothing_of_the_zone() -> None:
    assembler = LogAssembler("a:1", UTC)
    assembler.set_zone(UNIT_A.format(0, 1), 1234.0)
    assert assembler.zone is UTC
    plain = LogAssembler("a:1")
    plain.set_zone(UNIT_A.format(0, 1), datetime(2026, 11, 29, 9, 7, tzinfo=UTC).timestamp())
    assert plain.zone is None


def test_of_many_batch_lines_the_newest_is_told_with_their_number() -> None:
    assembler = LogAssembler("a:1")
    lines = [f"[2026-11-29 09:02:31 TP{n % 2}] Decode batch, #running-req: {n}, cuda graph: True" for n in range(10)]
    assembler.feed(lines, 0.0)
    events = assembler.take()
    assert [(event.rank, event.fields["running_requests"], event.fields["lines"]) for event in events] == [
        ("TP0", 8, 5),
        ("TP1", 9, 5),
    ]


def test_a_flood_is_counted_and_not_kept() -> None:
    assembler = LogAssembler("a:1")
    assembler.feed([UNIT_A.format(0, 1)] * (MAX_EVENTS + 7), 0.0)
    events = assembler.take()
    assert len(events) == MAX_EVENTS + 1
    assert events[-1].fields == {"events": 7}
