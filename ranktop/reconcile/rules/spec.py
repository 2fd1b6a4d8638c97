"""Speculative decoding that accepts less than it did: SPEC-COLLAPSE."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from statistics import quantiles

from ranktop.finding import Finding
from ranktop.reconcile.history import Track
from ranktop.reconcile.requests import acceptance
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import SERVER_RUNNING, Context
from ranktop.reconcile.verdict import RankVerdict

_ADVICE = (
    "the draft model's state may not come back with a restored prefix: compare with HiCache off or without "
    "--speculative-algorithm on a test server, and do not promote this launch on its time to first token"
)


def spec_collapse(context: Context) -> Iterator[Finding]:
    """Fewer tokens are accepted after a restored prefix, or than this server's own baseline at the same load."""
    for server in context.servers:
        records = _by_records(context, server.id)
        yield from [records] if records is not None else _by_baseline(context, server.id)


def _by_records(context: Context, server: str) -> Finding | None:
    requests = context.requests.get(server, ())
    restored, fresh = acceptance(requests, restored=True), acceptance(requests, restored=False)
    limits = context.thresholds
    if restored is None or fresh is None or min(restored.verify_steps, fresh.verify_steps) < limits.spec_verify_steps:
        return None
    if restored.length >= limits.spec_ratio * fresh.length:
        return None
    return Finding(
        "SPEC-COLLAPSE",
        "breach",
        f"acceptance length {restored.length:.2f} after a restored prefix, {fresh.length:.2f} without "
        f"({100 * restored.length / fresh.length:.0f} %)",
        scope="server",
        server=server,
        **evidence(
            "reported",
            restored_accept_length=restored.length,
            fresh_accept_length=fresh.length,
            restored_verify_steps=restored.verify_steps,
            fresh_verify_steps=fresh.verify_steps,
        ),
        advice=_ADVICE,
    )


def _by_baseline(context: Context, server: str) -> Iterator[Finding]:
    limits = context.thresholds
    rank = next((rank for rank in context.ranks_of(server) if _own_length(rank) is not None), None)
    window = context.window(server, limits.spec_window_seconds)
    if rank is None or window is None or window.before is None:
        return
    steps = window.gain("verify_calls")
    length = _own_length(rank)
    if length is None or steps is None or steps < limits.spec_verify_steps:
        return
    now, base = _now_and_baseline(context, rank)
    if now is None or base is None or now >= limits.spec_ratio * base:
        return
    yield Finding(
        "SPEC-COLLAPSE",
        "breach",
        f"acceptance length {now:.2f}, {100 * now / base:.0f} % of what it was at the same load ({base:.2f})",
        scope="server",
        server=server,
        **evidence("reported", accept_length=now, baseline_accept_length=base, verify_steps=steps),
        advice=_ADVICE,
    )


def _own_length(rank: RankVerdict) -> float | None:
    line = rank.line("spec.accept_length")
    return line.seen if line.seen and not line.group and not line.stale else None


def _now_and_baseline(context: Context, rank: RankVerdict) -> tuple[float | None, float | None]:
    """The mean of the last window, and the upper quartile of what came before it at about the present load.

    A quartile and no mean, so that a collapse does not become the baseline while it lasts.
    """
    limits = context.thresholds
    lengths = context.history.track((rank.server, rank.rank, "spec.accept_length"), float("inf"))
    running = context.history.track((rank.server, "", SERVER_RUNNING), float("inf"))
    since = context.sample.at_monotonic_seconds - limits.spec_window_seconds
    pairs = [(at, value) for at, value in zip(lengths.seconds, lengths.values, strict=True) if value]
    newest = [value for at, value in pairs if at >= since]
    if not newest or not running.values or min(newest) >= limits.spec_ratio * max(value for _, value in pairs):
        return None, None
    load = running.values[-1]
    before = [(at, value) for at, value in pairs if at < since and load / 2 <= _value_at(running, at) <= 2 * load]
    if len(before) < 2 or before[-1][0] - before[0][0] < limits.spec_baseline_seconds:
        return None, None
    return sum(newest) / len(newest), quantiles([value for _, value in before], n=4, method="inclusive")[2]


def _value_at(track: Track, at: float) -> float:
    """The newest value not after `at`; -1 before the first."""
    place = bisect_right(track.seconds, at)
    return track.values[place - 1] if place else -1.0
