"""Where prefill tokens came from (L1, L2, L3 or nowhere), and what moved between the tiers.

Never from `cache_hit_rate`: that is the last prefill batch alone, and 0 after every decode report until 0.5.18.
"""

from __future__ import annotations

from ranktop.reconcile.series import Series
from ranktop.reconcile.series_by_version import has_family
from ranktop.reconcile.verdict import TierShares, TransferRates

_EFFECTIVE = "sglang:prefill_effective_tokens_total"
_CACHED = "sglang:cached_tokens_total"
_PROMPT = "sglang:prompt_tokens_total"
_HICACHE_IS_ON = "sglang:hicache_host_total_tokens"
_BACKUP, _LOAD_BACK = "sglang:hicache_backup", "sglang:load_back"


def tier_shares(gains: Series, seconds: float | None, version: str | None) -> TierShares:
    """Shares of the prefill tokens of a window (`Series.since`); since the server's start when there is no page before.

    From `prefill_effective_tokens_total` (0.5.18 on: counted as prefill runs, re-counts of retracted requests left
    out), else from `cached_tokens_total` against `prompt_tokens_total` (counted when a request finishes).
    """
    effective = _effective(gains)
    if effective is not None:
        return _shares(effective, seconds, "")
    prompt = gains.total(_PROMPT)
    if prompt is None:
        lacks = has_family(_EFFECTIVE, version) is False
        detail = f"SGLang {version} has no per-tier counter" if lacks else "no token counter on the page"
        return TierShares(window_seconds=seconds, detail=detail)
    return _from_finished_requests(gains, prompt, seconds)


def transfer_rates(
    gains: Series, seconds: float | None, version: str | None, bytes_per_token: float | None
) -> TransferRates:
    """Node totals in bytes a second. None in a field where the window, the counter or the size of a token is missing.

    Byte and token counters are sums over ranks in every version. Where there are no bytes (before 0.5.18, and L3
    always) they are tokens x `bytes_per_token` of one rank (`host_bytes_per_token`); the source is then `inferred`.
    """
    if seconds is None:
        return TransferRates()
    backup, backup_inferred = _moved_bytes(gains, _BACKUP, bytes_per_token, version)
    load_back, load_back_inferred = _moved_bytes(gains, _LOAD_BACK, bytes_per_token, version)
    prefetched = gains.total("sglang:prefetched_tokens_total")
    prefetch = prefetched * bytes_per_token if prefetched is not None and bytes_per_token is not None else None
    known = [amount for amount in (backup, load_back, prefetch) if amount is not None]
    inferred = backup_inferred or load_back_inferred or prefetch is not None
    return TransferRates(
        backup_bytes_per_second=None if backup is None else backup / seconds,
        load_back_bytes_per_second=None if load_back is None else load_back / seconds,
        prefetch_bytes_per_second=None if prefetch is None else prefetch / seconds,
        source=None if not known else "inferred" if inferred else "reported",
    )


def host_bytes_per_token(totals: Series) -> float | None:
    """Bytes that one rank's host pools take a token, all pools together, by a page's own counters since the start.

    Both counters are sums over the same ranks, so the quotient is one rank's. 51,168 + 10,296 for GLM-5.2 in fp8.
    """
    for kind in (_BACKUP, _LOAD_BACK):
        size = totals.total(f"{kind}_bytes_total")
        tokens = totals.total(f"{kind}_tokens_total", pool="kv")
        if size and tokens:
            return size / tokens
    return None


def logical(series: Series, name: str, ranks: int | None = None, **wanted: str) -> float | None:
    """Tokens of a radix or storage counter counted once, though every rank of a group counts them.

    Sum over all samples / ranks of a group. It holds whether the ranks are merged into one sample (until 0.5.20),
    labelled apart (from 0.5.21), or plain-DP replicas collide in one label set (then both replicas' tokens are in it).
    """
    total = series.total(name, **wanted)
    writers = ranks or len(series.ranks())
    if total is None or not writers:
        return None
    return total * series.groups() / writers


def is_absent_zero(series: Series, name: str, version: str | None) -> bool:
    """Whether a HiCache counter that is not on the page means 0: the version has it, and HiCache is on."""
    return name not in series and _HICACHE_IS_ON in series and has_family(name, version) is True


def _effective(gains: Series) -> dict[str, float] | None:
    """Tokens by mode, every group counted once. None when no stats rank reports."""
    if not gains.leaders() or _EFFECTIVE not in gains:
        return None
    modes = ("input", "device_hit", "host_hit", "storage_hit")
    return {mode: gains.over_groups(_EFFECTIVE, mode=mode) or 0.0 for mode in modes}


def _from_finished_requests(gains: Series, prompt: float, seconds: float | None) -> TierShares:
    tiers = {"device_hit": 0.0, "host_hit": 0.0, "storage_hit": 0.0}
    unsplit = 0.0
    for labels, tokens in gains.rows(_CACHED):
        source = labels.get("cache_source", "total")
        # `storage` from 0.5.20, `storage_<backend>` before.
        tier = "storage_hit" if source.startswith("storage") else f"{source}_hit"
        if tier in tiers:
            tiers[tier] += tokens
        else:
            unsplit += tokens
    # Both are counted at the end of a request, but not in one instant.
    tokens = {"input": max(0.0, prompt - sum(tiers.values()) - unsplit), **tiers}
    if unsplit:
        miss = tokens["input"] / prompt if prompt else None
        detail = "cached_tokens_total has no breakdown by tier"
        return TierShares(
            miss=miss, source="reported", window_tokens=int(prompt), window_seconds=seconds, detail=detail
        )
    return _shares(tokens, seconds, "counted when a request finishes (cached_tokens_total)")


def _shares(tokens: dict[str, float], seconds: float | None, detail: str) -> TierShares:
    total = sum(tokens.values())
    if not total:
        return TierShares(source="reported", window_tokens=0, window_seconds=seconds, detail="no prefill in the window")
    return TierShares(
        device_hit=tokens["device_hit"] / total,
        host_hit=tokens["host_hit"] / total,
        storage_hit=tokens["storage_hit"] / total,
        miss=tokens["input"] / total,
        source="reported",
        window_tokens=int(total),
        window_seconds=seconds,
        detail=detail,
    )


def _moved_bytes(
    gains: Series, kind: str, bytes_per_token: float | None, version: str | None
) -> tuple[float | None, bool]:
    """Bytes of `backup` or `load_back` over all ranks, and whether they are tokens x size."""
    counted = gains.total(f"{kind}_bytes_total")
    if counted is not None:
        return counted, False
    # Before 0.5.18 the token counter has no `pool` label.
    tokens = [count for labels, count in gains.rows(f"{kind}_tokens_total") if labels.get("pool", "kv") == "kv"]
    if tokens and bytes_per_token is not None:
        return sum(tokens) * bytes_per_token, True
    return (0.0, False) if is_absent_zero(gains, f"{kind}_bytes_total", version) else (None, False)
