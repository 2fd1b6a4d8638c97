"""Ranks that are no more, of which pages and logs still tell."""

from __future__ import annotations

from ranktop.reconcile.verdict import Verdict


def gone_ranks(verdict: Verdict) -> frozenset[tuple[str, str]]:
    """(server, rank) whose process is not there while others of its server are: what a page says of it is old."""
    there = {rank.server for rank in verdict.ranks if rank.pid is not None}
    return frozenset((rank.server, rank.rank) for rank in verdict.ranks if rank.pid is None and rank.server in there)
