"""Reads from storage (L3 to L2), request by request, as the log of the ranks tells them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from ranktop.reconcile.eventlog import EventLog
from ranktop.reconcile.verdict import Prefetch
from ranktop.sample import Event

_NEWEST_EVENTS = 64
_NEWEST_READS = 8


def prefetches(log: EventLog, server: str, page_tokens: int | None = None) -> tuple[Prefetch, ...]:
    """The newest eight reads from storage, newest first. `page_tokens` is the page size of the launch.

    Every rank logs its own end of a read (`HiCache prefetch success|dropped|declined`, `cache_controller.py` and
    `hiradix_cache.py` of 0.5.18); how much was asked for, at its begin (`Prefetching N pages`), is logged for debug.
    """
    ended = [*log.all_of(server, "prefetch"), *log.all_of(server, "prefetch_declined")]
    if not ended:
        return ()
    reads: dict[tuple[str, int], list[Event]] = {}
    turns = Counter[tuple[str, str | None]]()
    for event in islice(sorted(ended, key=_when, reverse=True), _NEWEST_EVENTS):
        request = str(event.fields.get("rid", ""))
        # A rank that ends the same request's read once more has read twice.
        reads.setdefault((request, turns[request, event.rank]), []).append(event)
        turns[request, event.rank] += 1
    pages = {event.fields.get("rid"): event.fields.get("pages") for event in log.all_of(server, "prefetch_begin")}
    return tuple(
        _read(request, events, pages.get(request), page_tokens)
        for (request, _), events in islice(reads.items(), _NEWEST_READS)
    )


def _read(request: str, events: Sequence[Event], pages: int | None, page_tokens: int | None) -> Prefetch:
    newest = events[0]
    return Prefetch(
        request,
        newest.at_unix_seconds,
        str(newest.fields.get("outcome") or newest.fields.get("reason") or _unsaid(newest)),
        len({event.rank for event in events}),
        pages * page_tokens if pages is not None and page_tokens is not None else None,
        _fewest(events, "completed_tokens"),
        _fewest(events, "loaded_tokens"),
        newest.fields.get("occupied_tokens"),
    )


def _unsaid(event: Event) -> str:
    return "declined" if event.kind == "prefetch_declined" else ""


def _fewest(events: Sequence[Event], field: str) -> int | None:
    return min((event.fields[field] for event in events if field in event.fields), default=None)


def _when(event: Event) -> float:
    return event.at_unix_seconds
