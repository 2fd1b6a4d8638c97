"""Counters and gauges of the tiers that contradict each other: TIER-INCONSISTENT, L2-GAUGE-LIES, TIER-IO-FALLBACK."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.ledger import Ledger, Window
from ranktop.reconcile.rules.evidence import evidence, over_window, size, span
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.rules.tiers import host_and_storage_hits
from ranktop.reconcile.verdict import ServerVerdict


def tier_inconsistent(context: Context) -> Iterator[Finding]:
    """More was loaded back than was hit, or a tier is hit that this launch does not have.

    Not on a decode server, where a retracted request comes back without a hit, nor in a window with retractions.
    """
    limits = context.thresholds
    for server, window in context.windows(limits.tier_window_seconds):
        if server.role == "decode" or window.gain("retracted_requests"):
            continue
        yield from _impossible_hits(server, window, limits.tier_min_tokens)
        hits = host_and_storage_hits(window)
        loaded = _later(context.ledgers[server.id], window).gain("load_back_tokens")
        if hits is None or loaded is None:
            continue
        excess = loaded - hits
        if excess > max(limits.tier_min_tokens, limits.tier_difference_ratio * hits):
            yield Finding(
                "TIER-INCONSISTENT",
                "breach",
                f"{loaded:,.0f} tokens loaded back {span(window)}, and only {hits:,.0f} counted as host or storage "
                "hits",
                scope="server",
                server=server.id,
                **over_window(window, load_back_tokens=loaded, hit_tokens=hits, excess_tokens=excess),
                advice="do not rely on this server's hit shares: save two metrics pages a minute apart "
                "(`ranktop bundle`) and compare answers with a run without HiCache before promoting it",
            )


def gauge_lies(context: Context) -> Iterator[Finding]:
    """The gauge of L2's size times the bytes of a token is not what is mapped or logged."""
    ratio = context.thresholds.tier_difference_ratio
    for rank in context.ranks:
        total = rank.line("l2.total")
        if not total.seen or total.group or total.stale:
            continue
        pool, plan = rank.line("host.primary"), context.rank_plan(rank)
        if not pool.seen or plan is None or plan.host is None:
            continue
        said = total.seen * plan.host.bytes_per_token
        if abs(said - pool.seen) <= ratio * pool.seen:
            continue
        # A plan of the nearest version may have another row width; under DCP the gauge counts the sequence.
        whole = context.plan_of(rank.server)
        if whole is None or not whole.sglang.exact or whole.launch.dcp_size > 1:
            continue
        yield Finding(
            "L2-GAUGE-LIES",
            "breach",
            f"the gauge of L2's size says {size(said)}, the pool is {size(pool.seen)} "
            f"(hicache_host_total_tokens {total.seen:,.0f})",
            scope="rank",
            server=rank.server,
            rank=rank.rank,
            evidence={"gauge_tokens": total.seen, "gauge_bytes": said, "pool_bytes": pool.seen},
            sources={"gauge_tokens": "reported", "gauge_bytes": "computed", "pool_bytes": pool.source or ""},
            advice="trust the mapped size: occupancy and free room of L2 on any dashboard are off by this factor; "
            "compare the log line 'Allocating ... hierarchical KV host pool' of this rank",
        )


def io_fallback(context: Context) -> Iterator[Finding]:
    """The JIT copy kernel does not take this row width: which path runs instead."""
    for server in context.servers:
        told = context.log.newest(server.id, "jit_fallback")
        if not told:
            continue
        event = next(iter(told.values()))
        row = event.fields.get("row_bytes")
        why = f"rows of {row} bytes" if row is not None else str(event.fields.get("reason", "it did not load"))
        yield Finding(
            "TIER-IO-FALLBACK",
            "info",
            f"the JIT HiCache kernel is not used on {len(told)} rank{'s' if len(told) != 1 else ''}: {why}",
            scope="server",
            server=server.id,
            **evidence("logged", row_bytes=row, ranks=len(told)),
            advice="copies run through the plain kernel: measure rate.copy before and after a change of "
            "--hicache-io-backend or --hicache-mem-layout, at the next planned restart",
        )


def ttft_only(context: Context) -> Iterator[Finding]:
    """The first token comes sooner than under the launch before, and the whole request or its decoding is slower."""
    limits = context.thresholds
    for server in context.servers:
        known = context.launches.get(server.id, ())
        if len(known) < 2:
            continue
        base, now = known[-2], known[-1]
        if min(base.requests or 0.0, now.requests or 0.0) < limits.ttft_only_requests:
            continue
        first = _ratio(base.ttft_seconds, now.ttft_seconds)
        whole = _ratio(now.e2e_seconds, base.e2e_seconds)
        decode = _ratio(now.inter_token_seconds, base.inter_token_seconds)
        slower = max(whole or 0.0, decode or 0.0)
        if first is None or first < limits.ttft_only_ratio or slower < limits.ttft_only_ratio:
            continue
        yield Finding(
            "TIER-TTFT-ONLY",
            "warn",
            f"first token {first:.2f} times as fast as under the launch before, the rest {slower:.2f} times as slow",
            scope="server",
            server=server.id,
            **evidence(
                "reported",
                ttft_seconds=now.ttft_seconds,
                ttft_before_seconds=base.ttft_seconds,
                e2e_seconds=now.e2e_seconds,
                e2e_before_seconds=base.e2e_seconds,
                inter_token_seconds=now.inter_token_seconds,
                inter_token_before_seconds=base.inter_token_seconds,
            ),
            advice="do not promote this launch on its time to first token: compare end-to-end time and acceptance "
            "length at the same load",
        )


def _impossible_hits(server: ServerVerdict, window: Window, least: float) -> Iterator[Finding]:
    launch = server.plan.launch if server.plan is not None and server.plan_origin == "server_info" else None
    if launch is None:
        return
    for field, tier, exists in (
        ("host_hit_tokens", "L2", launch.hicache),
        ("storage_hit_tokens", "L3", launch.storage_backend is not None),
    ):
        hits = window.gain(field)
        if not exists and hits is not None and hits >= least:
            yield Finding(
                "TIER-INCONSISTENT",
                "breach",
                f"{hits:,.0f} tokens counted as {tier} hits {span(window)}, and this launch has no {tier}",
                scope="server",
                server=server.id,
                **over_window(window, **{field: hits}),
                advice="another server's counters stand on this page, or a storage backend was attached at run time: "
                "compare /server_info and the log line 'Attached HiCache storage backend'",
            )


def _later(kept: tuple[Ledger, ...], window: Window) -> Window:
    """The window without its first page: a load-back may be of a hit that was counted before it."""
    after_first = next((one for one in kept if window.before is not None and _is_after(one, window.before)), None)
    return window if after_first is None else Window(after_first, window.after)


def _is_after(one: Ledger, other: Ledger) -> bool:
    return one.at_monotonic_seconds > other.at_monotonic_seconds


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
