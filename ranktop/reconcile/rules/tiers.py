"""L2 written, read, dropped: L2-NEVER-READ, L2-PHANTOM-HIT, L2-PROVEN, L2-DROPPED, L2-CHURN."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.ledger import Window, over
from ranktop.reconcile.requests import repeats_share
from ranktop.reconcile.rules.evidence import over_window, span
from ranktop.reconcile.rules.rule import Context

RACE = "write_through_unbacked_eviction"
"""A drop reason (from 0.5.20) that is a race between eviction and write, and no lack of room."""


def l2_never_read(context: Context) -> Iterator[Finding]:
    """L1 evicts, L2 is written, and nothing comes back for ten minutes."""
    limits = context.thresholds
    for server, window in context.windows(limits.l2_idle_seconds):
        if window.gain("load_back_tokens") != 0.0:
            continue
        written, evicted = window.gain("backup_tokens"), window.gain("evicted_tokens")
        if not written or not evicted or min(written, evicted) < limits.tier_min_tokens:
            continue
        device, computed = window.gain("device_hit_tokens"), window.gain("input_tokens")
        repeats = device / (device + computed) if device is not None and computed is not None and device else 0.0
        repeats = max(repeats, repeats_share(context.requests.get(server.id, ())) or 0.0)
        proven = repeats >= limits.repeats_share
        yield Finding(
            "L2-NEVER-READ",
            "breach" if proven else "warn",
            f"{written:,.0f} tokens written to L2 {span(window)}, none read back"
            + (f", though {100 * repeats:.0f} % of the prompts was found in a tier" if proven else ""),
            scope="server",
            server=server.id,
            **over_window(
                window,
                written_tokens=written,
                evicted_tokens=evicted,
                load_back_tokens=0.0,
                device_hit_tokens=device,
            ),
            advice="`ranktop check --only L2-WHY` gives the reason; until it is known, a larger --hicache-size buys "
            "nothing, and without repeats in the traffic L2 is best left off at the next planned restart",
        )


def l2_phantom_hit(context: Context) -> Iterator[Finding]:
    """Hits are counted and the tokens recomputed: host and storage hits exceed what was loaded back.

    A hit is counted at scheduling, its load-back at the acknowledgement: hits of the newest page do not count yet.
    """
    limits = context.thresholds
    for server in context.servers:
        kept = context.ledgers.get(server.id, ())
        # Pages of a slow server can be further apart than the window.
        counted = over(kept[:-1], limits.tier_window_seconds)
        window = Window(counted.before, kept[-1]) if counted else context.window(server.id, limits.tier_window_seconds)
        if window is None:
            continue
        hits = host_and_storage_hits(Window(window.before, kept[-2]) if len(kept) > 1 else window)
        loaded = window.gain("load_back_tokens")
        if hits is None or loaded is None:
            continue
        phantom = hits - loaded
        if phantom > max(limits.tier_min_tokens, limits.tier_difference_ratio * hits):
            yield Finding(
                "L2-PHANTOM-HIT",
                "warn",
                f"{phantom:,.0f} of {hits:,.0f} tokens counted as L2 or L3 hits were computed again {span(window)}; "
                f"{loaded:.0f} loaded back",
                scope="server",
                server=server.id,
                **over_window(window, hit_tokens=hits, load_back_tokens=loaded, phantom_tokens=phantom),
                advice="load-back is declined when L1 has no room or the hit is under 10 tokens: compare l1.available "
                "with the prompt lengths; a larger --mem-fraction-static gives L1 room, and the hit share on any "
                "dashboard counts these as hits until then",
            )


def l2_proven(context: Context) -> Iterator[Finding]:
    """An L2 read happened: tokens and bytes were loaded back with host hits, and no storage hit explains them."""
    limits = context.thresholds
    for server, window in context.windows(limits.tier_window_seconds):
        loaded, size = window.gain("load_back_tokens"), window.gain("load_back_bytes")
        hits = window.gain("host_hit_tokens")
        if not loaded or not size or not hits or window.gain("storage_hit_tokens"):
            continue
        yield Finding(
            "L2-PROVEN",
            "info",
            f"{loaded:,.0f} tokens ({size / 1e9:.2f} GB over all ranks) came back from L2 {span(window)}, with "
            f"{hits:,.0f} host hit tokens and no storage hit",
            scope="server",
            server=server.id,
            **over_window(window, load_back_tokens=loaded, load_back_bytes=size, host_hit_tokens=hits),
            advice="this proves an L2 read, as no L1 hit explains it: compare answers and end-to-end time with a run "
            "without HiCache before promoting it",
        )


def l2_dropped(context: Context) -> Iterator[Finding]:
    """Tokens that should have gone to L2 were dropped or refused, by reason."""
    limits = context.thresholds
    for server, window in context.windows(limits.tier_window_seconds):
        dropped, rejected = window.gain("dropped_tokens") or 0.0, window.gain("rejected_tokens") or 0.0
        lost, written = dropped + rejected, window.gain("backup_tokens") or 0.0
        if not lost or lost < limits.dropped_share * (lost + written):
            continue
        reasons = {**window.gains("dropped_by_reason"), **window.gains("rejected_by_reason")}
        reasons = {reason: tokens for reason, tokens in reasons.items() if tokens}
        only_race = set(reasons) == {RACE}
        told = ", ".join(f"{reason} {tokens:,.0f}" for reason, tokens in sorted(reasons.items()) if reason)
        yield Finding(
            "L2-DROPPED",
            "warn",
            f"{lost:,.0f} tokens not kept in L2 {span(window)}" + (f" ({told})" if told else ""),
            scope="server",
            server=server.id,
            **over_window(
                window,
                dropped_tokens=dropped,
                rejected_tokens=rejected,
                written_tokens=written,
                tokens_by_reason=reasons,
            ),
            advice="pages were evicted before their write was acknowledged: that is a race, and a larger L2 does not "
            "help; --hicache-write-policy write_back writes at eviction"
            if only_race
            else "L2 has no room that it may free: `ranktop preflight` prints the largest --hicache-size that fits; "
            "host tokens must exceed device tokens",
        )


def l2_churn(context: Context) -> Iterator[Finding]:
    """L2 is full and written over within the window, and hardly any of it is read before."""
    limits = context.thresholds
    for server, window in context.windows(limits.l2_idle_seconds):
        if window.seconds is None:
            continue
        used, total = _occupancy(context, server.id)
        written, read = window.gain("backup_tokens"), window.gain("load_back_tokens")
        if not used or not total or not written or read is None or used < limits.l2_full_share * total:
            continue
        if written < total or not 0 < read < limits.churn_read_share * written:
            continue
        overwritten = window.seconds * total / written
        yield Finding(
            "L2-CHURN",
            "warn",
            f"L2 ({total:,.0f} tokens) is written over every {overwritten:.0f} s and {100 * read / written:.1f} % of "
            "it is read before",
            scope="server",
            server=server.id,
            **over_window(
                window,
                l2_total_tokens=total,
                written_tokens=written,
                load_back_tokens=read,
                seconds_until_overwritten=overwritten,
            ),
            advice="the working set is larger than L2: --hicache-write-policy write_through_selective keeps what is "
            "hit twice, or route sessions to the same server; `ranktop preflight` prints the largest --hicache-size",
        )


def host_and_storage_hits(window: Window) -> float | None:
    """Prefill tokens counted as found in L2 or L3. None where no rank counts them."""
    host, storage = window.gain("host_hit_tokens"), window.gain("storage_hit_tokens")
    return None if host is None else host + (storage or 0.0)


def _occupancy(context: Context, server: str) -> tuple[float | None, float | None]:
    """Used and total tokens of the first rank that reports its own."""
    for rank in context.ranks_of(server):
        used, total = rank.line("l2.used"), rank.line("l2.total")
        if used.seen is not None and total.seen:
            return used.seen, total.seen
    return None, None
