"""Reads from storage: L3-PREFETCH-EMPTY, L3-DEADLINE, L3-RANK-SKEW."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ranktop.finding import Finding
from ranktop.reconcile.ledger import Ledger, Window
from ranktop.reconcile.rules.evidence import evidence, over_window, span
from ranktop.reconcile.rules.rule import Context
from ranktop.sample import Event

_NOT_ASKED = frozenset({"below_threshold", "device_covered", "device_overlap"})
"""Reasons of 0.5.20 and later with which nothing was missed: too short, or in L1 already."""


def prefetch_empty(context: Context) -> Iterator[Finding]:
    """Storage was asked and brought nothing: by the counters of 0.5.20 and later, else by the log."""
    limits = context.thresholds
    for server in context.servers:
        window = context.window(server.id, limits.prefetch_window_seconds)
        if window is not None and window.after.storage_backup_tokens == 0:
            # Nothing has been written yet, so nothing can be there.
            continue
        told = _counted(server.id, window) if window is not None else None
        yield from told or _logged(context, server.id)


def l3_deadline(context: Context) -> Iterator[Finding]:
    """A prefetch may take longer than the service allows, or tokens were given up at the deadline."""
    limits = context.thresholds
    for server, window in context.windows(limits.prefetch_window_seconds):
        late = window.gains("unfulfilled_by_reason").get("deadline", 0.0)
        if late > 0:
            yield Finding(
                "L3-DEADLINE",
                "warn",
                f"{late:,.0f} tokens were not fetched before their deadline {span(window)}",
                scope="server",
                server=server.id,
                **over_window(window, unfulfilled_tokens=late),
                advice="storage is slower than the deadline (1 s + 0.25 s per 1024 tokens unless the backend's extra "
                "config says otherwise): measure its bandwidth, then raise prefetch_timeout_per_ki_token or use "
                "--hicache-storage-prefetch-policy best_effort",
            )
            continue
        prompt = _mean_prompt(window)
        plan, budget = server.plan, limits.prefetch_budget_seconds
        if budget is None or prompt is None or plan is None or plan.launch.storage_backend is None:
            continue
        deadline = _interpolated(plan.l3.deadline_seconds, prompt)
        if deadline is not None and plan.l3.policy == "timeout" and deadline > budget:
            yield Finding(
                "L3-DEADLINE",
                "warn",
                f"a prefix of {prompt:,.0f} tokens may wait {deadline:.1f} s for storage, the budget is {budget:.1f} s",
                scope="server",
                server=server.id,
                evidence={"prompt_tokens": round(prompt), "deadline_seconds": deadline, "budget_seconds": budget},
                sources={"prompt_tokens": "reported", "deadline_seconds": "computed", "budget_seconds": "given"},
                advice="set prefetch_timeout_base and prefetch_timeout_per_ki_token in "
                "--hicache-storage-backend-extra-config, or --hicache-storage-prefetch-policy best_effort",
            )


def l3_rank_skew(context: Context) -> Iterator[Finding]:
    """Ranks of one group, which read the same prefixes, drift apart in what they have read, three windows long."""
    limits = context.thresholds
    for server in context.servers:
        marks = _marks(context.ledgers.get(server.id, ()), limits.prefetch_window_seconds)
        if len(marks) < 4:
            continue
        for group, ranks in _groups(marks[-1].prefetched_by_rank).items():
            spreads = [_spread(mark.prefetched_by_rank, ranks) for mark in marks]
            grows = all(later > earlier for earlier, later in pairwise(spreads))
            if not grows or spreads[-1] - spreads[0] < limits.skew_min_tokens:
                continue
            totals = {rank: marks[-1].prefetched_by_rank[rank] for rank in ranks}
            behind = min(totals, key=lambda rank: totals[rank])
            yield Finding(
                "L3-RANK-SKEW",
                "breach",
                f"the ranks of {group} differ by {spreads[-1]:,.0f} tokens read from storage, and drift apart",
                scope="server",
                server=server.id,
                **evidence(
                    "reported",
                    spread_tokens=spreads[-1],
                    spread_before_tokens=spreads[0],
                    window_seconds=marks[-1].at_monotonic_seconds - marks[0].at_monotonic_seconds,
                    behind_rank=f"tp_rank {behind.split('/')[-1]}",
                ),
                advice="the ranks of a group must hold the same prefixes: read that rank's log for storage errors and "
                "drain this server before its answers are trusted",
            )


def _counted(server: str, window: Window) -> list[Finding] | None:
    """None where this version does not count what was asked; a list, maybe empty, where it does."""
    if not window.after.unfulfilled_by_reason:
        return None
    reasons = window.gains("unfulfilled_by_reason")
    missed = {reason: tokens for reason, tokens in reasons.items() if tokens and reason not in _NOT_ASKED}
    asked = sum(missed.values())
    if window.gain("prefetched_tokens") or not asked:
        return []
    told = ", ".join(f"{reason} {tokens:,.0f}" for reason, tokens in sorted(missed.items()))
    return [
        Finding(
            "L3-PREFETCH-EMPTY",
            "warn",
            f"{asked:,.0f} tokens asked of storage {span(window)}, none loaded ({told})",
            scope="server",
            server=server,
            **over_window(window, asked_tokens=asked, loaded_tokens=0.0, tokens_by_reason=missed),
            advice="read the storage backend's own log of this minute. By reason, host_capacity: L2 has no room to "
            "read into; storage_transfer or deadline: the backend fails or "
            "is too slow; dropped: the request left before",
        )
    ]


def _logged(context: Context, server: str) -> Iterator[Finding]:
    """Every prefetch of a rank that was logged brought nothing, and there were enough of them."""
    limits = context.thresholds
    by_rank: dict[str | None, list[Event]] = {}
    for event in context.recent(server, "prefetch", limits.prefetch_window_seconds):
        by_rank.setdefault(event.rank, []).append(event)
    for rank, events in by_rank.items():
        loaded = [event.fields.get("loaded_tokens") for event in events]
        if any(tokens != 0 for tokens in loaded):
            continue
        if len(events) < limits.prefetch_min_requests and not context.since_start:
            continue
        yield Finding(
            "L3-PREFETCH-EMPTY",
            "warn",
            f"{len(events)} prefetches from storage, and none of them loaded a token",
            scope="server" if rank is None else "rank",
            server=server,
            rank=rank,
            **evidence("logged", prefetches=len(events), loaded_tokens=0),
            advice="this version does not tell why: compare namespace and page size of what was written, L2's free "
            "room, and whether prefetches end at their deadline (--hicache-storage-prefetch-policy wait_complete on a "
            "test server tells)",
        )


def _marks(ledgers: Sequence[Ledger], seconds: float) -> list[Ledger]:
    """The newest ledger and those before it, three windows back, oldest first."""
    marks: list[Ledger] = []
    for one in reversed(ledgers):
        if not marks or marks[-1].at_monotonic_seconds - one.at_monotonic_seconds >= seconds:
            marks.append(one)
        if len(marks) == 4:
            break
    return marks[::-1]


def _groups(by_rank: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """Ranks that read the same: those of one DP group, when there are several."""
    groups: dict[str, list[str]] = {}
    for rank in by_rank:
        groups.setdefault(f"DP{rank.split('/')[0]}", []).append(rank)
    return {group: tuple(ranks) for group, ranks in groups.items() if len(ranks) > 1}


def _spread(by_rank: Mapping[str, float], ranks: Sequence[str]) -> float:
    values = [by_rank.get(rank, 0.0) for rank in ranks]
    return max(values) - min(values)


def _mean_prompt(window: Window) -> float | None:
    tokens, requests = window.gain("prompt_tokens"), window.gain("finished_requests")
    return tokens / requests if tokens and requests else None


def _interpolated(deadlines: Mapping[str, float], tokens: float) -> float | None:
    """The deadline of a length between those of the plan, which lie on a straight line up to a cap."""
    points = sorted((int(length), seconds) for length, seconds in deadlines.items())
    for (low, first), (high, last) in pairwise(points):
        if low <= tokens <= high:
            return first + (last - first) * (tokens - low) / (high - low)
    return None
