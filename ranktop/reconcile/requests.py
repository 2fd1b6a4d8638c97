"""Requests one by one, from the records of --export-metrics-to-file: where their prefix came from, how they decoded.

A record is an event of kind `request` with the fields of `Request`; parameters and text of a request are in none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from ranktop.sample import Event

Population = Literal["cold", "l1", "l2", "l3", "partial"]

WHOLE_SHARE = 0.5
"""Share of a prompt that has to come from the tiers for the request to be one of a tier and not a partial hit."""


class Request(Struct, frozen=True):
    """One finished request. None where the record does not say."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    device_tokens: int | None = None
    host_tokens: int | None = None
    storage_tokens: int | None = None
    ttft_seconds: float | None = None
    e2e_seconds: float | None = None
    accept_length: float | None = None
    verify_steps: int | None = None

    @property
    def is_restored(self) -> bool | None:
        """Whether part of its prefix came back from L2 or L3. None when the record has no breakdown by tier."""
        if self.host_tokens is None and self.storage_tokens is None:
            return None
        return bool((self.host_tokens or 0) + (self.storage_tokens or 0))

    @property
    def population(self) -> Population | None:
        """The lowest tier that its prefix came from; `partial` when most of the prompt was computed."""
        if self.prompt_tokens is None or self.cached_tokens is None:
            return None
        if self.cached_tokens == 0:
            return "cold"
        if self.cached_tokens < WHOLE_SHARE * self.prompt_tokens:
            return "partial"
        if self.storage_tokens:
            return "l3"
        return "l2" if self.host_tokens else "l1"


class Acceptance(Struct, frozen=True):
    """Acceptance length over requests, weighted by verify steps."""

    length: float
    verify_steps: int


def request_of(event: Event) -> Request:
    """The record of a `request` event; what is no number is left out."""
    return Request(**{name: _number(event.fields.get(name)) for name in Request.__struct_fields__})


def acceptance(requests: Iterable[Request], *, restored: bool) -> Acceptance | None:
    """Acceptance of the requests with a restored prefix, or of those without. None when none of them verified."""
    chosen = [
        (request.accept_length, request.verify_steps)
        for request in requests
        if request.is_restored is restored and request.accept_length is not None and request.verify_steps
    ]
    steps = sum(count for _, count in chosen)
    return Acceptance(sum(length * count for length, count in chosen) / steps, steps) if steps else None


def _number(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
