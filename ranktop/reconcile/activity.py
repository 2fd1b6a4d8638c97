"""When each server last did something that can be seen, and since when work waits at its door."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ranktop.reconcile.ledger import Ledger
from ranktop.reconcile.verdict import RankVerdict, ServerVerdict
from ranktop.sample import Sample

BUSY_PERCENT = 1.0
"""GPU use from which a rank is taken to compute."""


class Activity(Struct, frozen=True):
    """Monotonic seconds of what was last seen to move. None: not seen since ranktop watches, or not readable."""

    door_requests: int | None = None
    """Work at the door: open HTTP requests on generating endpoints, or more when more are queued; clients that are
    connected while the HTTP process is silent."""
    door_since: float | None = None
    """Since when there has been work at the door without a break."""
    forward_count: float | None = None
    forward_at: float | None = None
    """The first page that showed the present forward count."""
    pages_batchless: int = 0
    """Pages since then."""
    gauges_fingerprint: int | None = None
    gauges_at: float | None = None
    pages_still: int = 0
    """Pages since then."""
    page_unix_seconds: float | None = None
    log_at: float | None = None
    gpu_at: float | None = None
    """When a GPU of its ranks was last busy."""
    is_gpu_read: bool = False
    """GPU use of every rank is known now."""
    is_http_silent: bool = False
    """The metrics page was asked for, and no answer came in time."""

    def idle_seconds(self, now: float) -> float | None:
        """Seconds with work at the door and nothing moving: no batch, no log line, no GPU use. None without work."""
        if self.door_since is None:
            return None
        return now - max(self.door_since, *(at or 0.0 for at in (self.forward_at, self.log_at, self.gpu_at)))

    def batchless_seconds(self, now: float) -> float | None:
        """Seconds with work at the door and no batch. None without work or without a counter of batches."""
        if self.door_since is None or self.forward_at is None:
            return None
        return now - max(self.door_since, self.forward_at)

    def frozen_seconds(self, now: float) -> float | None:
        """Seconds with work at the door and scheduler gauges that do not move."""
        if self.door_since is None or self.gauges_at is None:
            return None
        return now - max(self.door_since, self.gauges_at)


def follow(
    known: Activity | None,
    sample: Sample,
    server: ServerVerdict,
    ranks: Sequence[RankVerdict],
    ledgers: Sequence[Ledger],
    log_unix_seconds: float | None,
) -> Activity:
    """What is known after this sample. `ledgers` and `ranks` are this server's, `log_unix_seconds` its newest event."""
    now = sample.at_monotonic_seconds
    before = known or Activity()
    is_http_silent = _metrics_code(sample, server.id) == "timeout"
    door = _door(sample, server, is_http_silent)
    page = ledgers[-1] if ledgers else Ledger(0.0, now)
    is_new = bool(ledgers) and page.at_unix_seconds != before.page_unix_seconds
    moved = is_new and page.forward_count != before.forward_count
    shifted = is_new and page.gauges_fingerprint != before.gauges_fingerprint
    use = _gpu_percent(sample, ranks)
    logged = None if log_unix_seconds is None else now - max(0.0, sample.at_unix_seconds - log_unix_seconds)
    return Activity(
        door_requests=door,
        door_since=(before.door_since if before.door_since is not None else now) if door else None,
        forward_count=page.forward_count if ledgers else before.forward_count,
        forward_at=page.at_monotonic_seconds if moved else before.forward_at,
        pages_batchless=0 if moved else before.pages_batchless + is_new,
        gauges_fingerprint=page.gauges_fingerprint if ledgers else before.gauges_fingerprint,
        gauges_at=page.at_monotonic_seconds if shifted else before.gauges_at,
        pages_still=0 if shifted else before.pages_still + is_new,
        page_unix_seconds=page.at_unix_seconds if ledgers else before.page_unix_seconds,
        log_at=logged,
        gpu_at=now if use is not None and use >= BUSY_PERCENT else before.gpu_at,
        is_gpu_read=use is not None,
        is_http_silent=is_http_silent,
    )


def _door(sample: Sample, server: ServerVerdict, is_http_silent: bool) -> int | None:
    """Work at the door, None when nobody knows.

    Never a scheduler gauge alone: those freeze together with the scheduler. A page stays in the sample while its source
    fails and tells nothing then; while the HTTP process is silent, clients that are connected wait.
    """
    if is_http_silent:
        told = sample.connections.get(server.id)
        port = server.id.rpartition(":")[2]
        return told.established_by_port.get(int(port), 0) if told is not None and port.isdecimal() else None
    if server.id not in sample.metrics or _metrics_code(sample, server.id) is not None:
        return None
    active = server.service.http_active
    return max(active, server.service.queued or 0) if active else active


def _metrics_code(sample: Sample, server: str) -> str | None:
    """The code of the metrics source's failure, None while it is well."""
    states = (state for state in sample.sources if state.name == "metrics" and state.server == server)
    return next((state.code for state in states if state.state != "ok"), None)


def _gpu_percent(sample: Sample, ranks: Sequence[RankVerdict]) -> float | None:
    """The busiest GPU of these ranks; None when the use of any of them is not known."""
    gpus = {gpu.index: gpu.utilization_percent for gpu in sample.gpus.gpus} if sample.gpus is not None else {}
    used = [gpus.get(rank.gpu) if rank.gpu is not None else None for rank in ranks]
    known = [percent for percent in used if percent is not None]
    return max(known) if known and len(known) == len(used) else None
