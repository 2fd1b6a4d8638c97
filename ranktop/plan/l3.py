"""Prefetch from storage (L3): which cache class serves the model, and its deadlines."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ranktop.plan.plan import L3Plan, PlanError
from ranktop.plan.profiles import Profile

PREFETCH_LENGTHS_TOKENS = (256, 1024, 8192, 65536, 300_000, 1_048_576)
DEFAULT_THRESHOLD_TOKENS = 256


class Deadline(Struct, frozen=True):
    """`base + per_1024_tokens * tokens / 1024` seconds, at most `cap` (None: uncapped)."""

    base_seconds: float
    per_1024_tokens_seconds: float
    cap_seconds: float | None = None

    def seconds(self, tokens: int) -> float:
        """The deadline of a prefetch of that many tokens."""
        deadline = self.base_seconds + self.per_1024_tokens_seconds * tokens / 1024
        return deadline if self.cap_seconds is None else min(deadline, self.cap_seconds)


UNIFIED = Deadline(1.0, 0.25)
"""UnifiedRadixCache, every version: what a DSA model really gets."""
HIRADIX = Deadline(2.0, 0.1, 30.0)
"""HiRadixCache: plain MLA and GQA models until 0.5.18, and the figures of the HiCache audit."""


def cache_class(profile: Profile, attention: str) -> str:
    """The class that serves a model of that attention with HiCache."""
    return "UnifiedRadixCache" if attention == "dsa" else profile.plain_tree


def l3_plan(profile: Profile, attention: str, page_size: int, policy: str, extra_config: str | None) -> L3Plan:
    """Threshold and deadlines by prefix length, after the storage backend's own configuration."""
    cache = cache_class(profile, attention)
    deadline = UNIFIED if cache == "UnifiedRadixCache" else HIRADIX
    config = _extra(extra_config)
    deadline = Deadline(
        float(config.get("prefetch_timeout_base", deadline.base_seconds)),
        float(config.get("prefetch_timeout_per_ki_token", deadline.per_1024_tokens_seconds)),
        deadline.cap_seconds,
    )
    threshold = max(int(config.get("prefetch_threshold", DEFAULT_THRESHOLD_TOKENS)), page_size)
    # SGLang counts whole pages.
    seconds = {str(tokens): deadline.seconds(tokens // page_size * page_size) for tokens in PREFETCH_LENGTHS_TOKENS}
    return L3Plan(threshold, seconds, policy, cache)


def _extra(text: str | None) -> dict[str, float]:
    """Numbers in the storage backend's JSON configuration; a file reference (`@...`) or no JSON gives none."""
    if not text or not text.lstrip().startswith("{"):
        return {}
    try:
        config = msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise PlanError("--hicache-storage-backend-extra-config: not JSON; a JSON object is accepted") from None
    return {name: value for name, value in config.items() if isinstance(value, int | float)}
