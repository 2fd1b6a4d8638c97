"""Requests by where their prefix came from: does decoding after a restored prefix accept as much as without one?

From the records of --export-metrics-to-file.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ranktop.sample import RequestRecord


class Acceptance(Struct, frozen=True):
    """Acceptance length over requests, weighted by verify steps."""

    length: float
    verify_steps: int


def is_restored(request: RequestRecord) -> bool | None:
    """Whether part of the prefix came back from L2 or L3. None when the record has no breakdown by tier."""
    if request.host_tokens is None and request.storage_tokens is None:
        return None
    return bool((request.host_tokens or 0) + (request.storage_tokens or 0))


def acceptance(requests: Iterable[RequestRecord], *, restored: bool) -> Acceptance | None:
    """Acceptance of the requests with a restored prefix, or of those without. None when none of them verified."""
    chosen = [
        (request.accept_length, request.verify_steps)
        for request in requests
        if is_restored(request) is restored and request.accept_length is not None and request.verify_steps
    ]
    steps = sum(count for _, count in chosen)
    return Acceptance(sum(length * count for length, count in chosen) / steps, steps) if steps else None


def repeats_share(requests: Iterable[RequestRecord]) -> float | None:
    """Share of the prompt tokens that some tier held: what proves that prompts repeat. None without records."""
    told = [
        (one.prompt_tokens, one.cached_tokens)
        for one in requests
        if one.prompt_tokens and one.cached_tokens is not None
    ]
    prompt = sum(tokens for tokens, _ in told)
    return sum(cached for _, cached in told) / prompt if prompt else None
