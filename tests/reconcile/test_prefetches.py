"""Reads from storage, request by request, from the lines of all ranks."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.serverlog_lines import match_message
from ranktop.reconcile.eventlog import EventLog
from ranktop.reconcile.prefetches import prefetches
from ranktop.reconcile.verdict import Prefetch
from ranktop.sample import Event

A = "a:1"


def ended(at: float, rank: str, rid: str, kind: str = "prefetch", **fields: Any) -> Event:
    return Event(at, kind, "", A, rank, {"rid": rid, **fields})


def of(*events: Event, page_tokens: int | None = 64) -> list[tuple[object, ...]]:
    log = EventLog()
    log.record(events)
    return [
        (one.request, one.outcome, one.ranks, one.requested_tokens, one.completed_tokens, one.loaded_tokens)
        for one in prefetches(log, A, page_tokens)
    ]


def test_the_rank_with_least_says_what_is_of_use() -> None:
    told: dict[str, Any] = {"outcome": "success", "occupied_tokens": 0}
    assert of(
        ended(1.0, "TP0", "x", "prefetch_begin", pages=100),
        ended(2.0, "TP0", "x", completed_tokens=6400, loaded_tokens=6400, **told),
        ended(2.0, "TP1", "x", completed_tokens=640, loaded_tokens=0, **told),
    ) == [("x", "success", 2, 6400, 640, 0)]


def test_a_genuine_line_has_every_field() -> None:
    found = match_message(
        "HiCache prefetch success req=8f1d0c completed_local=6400 completed_synced=6400 matched=0 loaded=6400 "
        "released=0 occupied=128"
    )
    assert found is not None
    log = EventLog()
    log.record([Event(1.0, found[0], "", A, "TP0", found[1])])
    assert prefetches(log, A) == (Prefetch("8f1d0c", 1.0, "success", 1, None, 6400, 6400, 128),)


def test_a_request_that_is_read_again_is_another_read() -> None:
    ends = [ended(at, rank, "x", loaded_tokens=int(at)) for at in (1.0, 2.0) for rank in ("TP0", "TP1")]
    assert [(one[2], one[5]) for one in of(*ends)] == [(2, 2), (2, 1)]


def test_newest_first_and_no_more_than_eight() -> None:
    found = of(*(ended(float(at), "TP0", f"r{at}", loaded_tokens=at) for at in range(20)))
    assert [one[0] for one in found] == [f"r{at}" for at in range(19, 11, -1)]


@pytest.mark.parametrize(("fields", "outcome"), [({"reason": "host_full"}, "host_full"), ({}, "declined")])
def test_one_that_was_declined(fields: dict[str, Any], outcome: str) -> None:
    assert of(ended(1.0, "TP0", "x", "prefetch_declined", **fields)) == [("x", outcome, 1, None, None, None)]


def test_no_page_size_no_request_size_and_no_line_no_read() -> None:
    begun = ended(1.0, "TP0", "x", "prefetch_begin", pages=100)
    assert of(begun) == []
    assert of(begun, ended(2.0, "TP0", "x", loaded_tokens=5), page_tokens=None) == [("x", "", 1, None, None, 5)]
