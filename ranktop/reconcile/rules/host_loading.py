"""Host pools that are being filled and registered, which takes minutes and is no hang: HOST-POOL-LOADING."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktop.finding import Finding
from ranktop.reconcile.allocation import Pending
from ranktop.reconcile.counters import PINS, RESIDENT_POOLS, outstanding_pins_bytes
from ranktop.reconcile.history import Track
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.trend import trend
from ranktop.reconcile.verdict import ServerVerdict

_DONE_SHARE = 0.995
_RATE_SECONDS = 20.0


def pool_loading(context: Context) -> Iterator[Finding]:
    """One finding a loading server whose ranks have begun to fill their pools."""
    loading = [server for server in context.servers if server.is_ready is False and server.plan is not None]
    for server in loading:
        own = [rank for rank in context.pending if rank.server == server.id]
        planned = sum(rank.planned_bytes for rank in own)
        done = planned - sum(rank.pending_bytes for rank in own)
        if not planned or done <= 0:
            continue
        if done < _DONE_SHARE * planned:
            track = context.history.track((server.id, "", RESIDENT_POOLS), _RATE_SECONDS)
            yield _loading(server, own, "filled", done, planned, _rate(track))
        elif len(loading) == 1 and (registered := _registered(context, planned)) is not None:
            yield _loading(server, own, "registered with CUDA", *registered)


def _registered(context: Context, planned: int) -> tuple[int, int, float | None] | None:
    """Pins out on this node, where the driver's count: only with one server loading are they this server's."""
    host = context.sample.host
    pins = outstanding_pins_bytes(host) if host is not None else None
    others = sum(
        int(line.seen or 0)
        for rank in context.ranks
        if context.ready_for_seconds(rank.server) is not None
        for line in rank.pools
    )
    own = pins - others if pins is not None else 0
    if own <= 0 or own >= _DONE_SHARE * planned:
        return None
    return own, planned, _rate(context.history.track(("", "", PINS), _RATE_SECONDS))


def _rate(track: Track) -> float | None:
    line = trend(track.seconds, track.values)
    return line.per_second if line is not None and line.per_second > 0 else None


def _loading(
    server: ServerVerdict, ranks: Sequence[Pending], what: str, done: int, planned: int, rate: float | None
) -> Finding:
    left = (planned - done) / rate if rate else None
    return Finding(
        "HOST-POOL-LOADING",
        "info",
        f"host pools are being {what}: {done / 1e9:.2f} of {planned / 1e9:.2f} GB ({100 * done / planned:.0f} %)"
        + (f", {rate / 1e9:.2f} GB/s, about {left:.0f} s left" if rate and left is not None else ""),
        scope="server",
        server=server.id,
        evidence={
            "done_bytes": done,
            "planned_bytes": planned,
            "bytes_per_second": round(rate) if rate else None,
            "seconds_left": round(left) if left is not None else None,
            "ranks": len(ranks),
        },
        sources={
            "done_bytes": "measured",
            "planned_bytes": "computed",
            "bytes_per_second": "inferred",
            "seconds_left": "inferred",
            "ranks": "measured",
        },
        advice="wait: filling 100 GB takes a minute or more on one thread, registering it as long again",
    )
