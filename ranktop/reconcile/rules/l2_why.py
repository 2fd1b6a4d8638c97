"""Why L2 gives no hits: one verdict, the first that holds in a fixed order: L2-WHY."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from ranktop.finding import Finding, Severity
from ranktop.reconcile.ledger import Window
from ranktop.reconcile.rules.evidence import over_window
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.tokenledger import TokenLedger, token_ledger

Reason = Literal[
    "radix_off", "not_needed", "not_written", "dropped", "overwritten", "phantom", "in_no_tier", "no_reuse"
]

_SAYS: dict[Reason, tuple[Severity, str, str]] = {
    "radix_off": (
        "warn",
        "the radix cache is off, so no prefix is ever looked up",
        "drop --disable-radix-cache at the next planned restart",
    ),
    "not_needed": (
        "info",
        "L1 has evicted nothing: L2 is not needed by this traffic",
        "leave L2 off for this traffic, or test with prompts that exceed L1 (l1.tokens)",
    ),
    "not_written": (
        "warn",
        "L1 evicts and L2 is not written: what is evicted is lost",
        "compare --hicache-write-policy: write_through_selective writes only what is hit again, write_back only at "
        "eviction; a server that writes nothing at all lacks --enable-hierarchical-cache or its host pool",
    ),
    "dropped": (
        "warn",
        "most of what L1 evicts is dropped or refused by L2",
        "`ranktop preflight` prints the largest --hicache-size that fits; host tokens must exceed device tokens",
    ),
    "overwritten": (
        "warn",
        "L2 is full and overwritten before anything is asked for again",
        "the working set is larger than L2: route sessions to the same server, or use write_through_selective",
    ),
    "phantom": (
        "warn",
        "prefixes are found in L2 and computed again: load-back is declined",
        "give L1 room (--mem-fraction-static): load-back is declined when L1 is full",
    ),
    "in_no_tier": (
        "warn",
        "prompts match nothing in any tier, L1 included",
        "compare two prompts token by token: a time stamp or an id at the front, a chat template that differs, or a "
        "router that sends a session's turns to several servers",
    ),
    "no_reuse": (
        "info",
        "what is asked for again is still in L1; nothing that was evicted is asked for again",
        "this traffic repeats too soon for L2: it pays with more sessions or longer pauses between their turns",
    ),
}


class Verdict(NamedTuple):
    """The reason, and the token ledger that it was read from."""

    reason: Reason
    tokens: TokenLedger


def l2_why(context: Context) -> Iterator[Finding]:
    """L2 is on, there is traffic, and its hit share has been nothing for ten minutes."""
    limits = context.thresholds
    for server, window in context.windows(limits.l2_idle_seconds):
        plan = server.plan
        if plan is None or not plan.launch.hicache:
            continue
        info = context.sample.infos.get(server.id)
        radix_off = bool(info and info.args.get("disable_radix_cache"))
        capacity = next(
            (line.seen for rank in context.ranks_of(server.id) if (line := rank.line("l2.total")).seen), None
        )
        verdict = why(window, limits, radix_off=radix_off, capacity_tokens=capacity)
        if verdict is None:
            continue
        severity, says, advice = _SAYS[verdict.reason]
        counted = {f"{name}_tokens": tokens for name, tokens in msgspec.structs.asdict(verdict.tokens).items()}
        reasons = {
            reason: tokens
            for field in ("dropped_by_reason", "rejected_by_reason")
            for reason, tokens in window.gains(field).items()
            if tokens
        }
        told = over_window(window, reason=verdict.reason, dropped_by_reason=reasons or None, **counted)
        yield Finding(
            "L2-WHY", severity, f"no hit in L2: {says}", scope="server", server=server.id, **told, advice=advice
        )


def why(
    window: Window, limits: Thresholds, *, radix_off: bool = False, capacity_tokens: float | None = None
) -> Verdict | None:
    """The first reason that holds. None when L2 gives hits, there is no traffic, or the counters do not tell."""
    tokens = token_ledger(window)
    if radix_off:
        return Verdict("radix_off", tokens)
    if tokens.prefill is None or tokens.prefill < limits.l2_min_input_tokens or tokens.hit is None:
        return None
    if tokens.read and tokens.read > limits.l2_hit_share * tokens.prefill:
        return None
    if tokens.evicted is None or tokens.read is None:
        return None
    if tokens.evicted == 0:
        return Verdict("not_needed", tokens)
    if tokens.written is None or tokens.lost is None:
        return None
    if (tokens.dropped or 0.0) > tokens.written and (tokens.dropped or 0.0) >= tokens.lost:
        return Verdict("dropped", tokens)
    if tokens.lost > tokens.written:
        return Verdict("not_written", tokens)
    if capacity_tokens and (tokens.backup or 0.0) > capacity_tokens:
        return Verdict("overwritten", tokens)
    if (tokens.phantom or 0.0) > limits.l2_hit_share * tokens.prefill:
        return Verdict("phantom", tokens)
    if (tokens.device_hit or 0.0) <= limits.l2_hit_share * tokens.prefill:
        return Verdict("in_no_tier", tokens)
    return Verdict("no_reuse", tokens)
