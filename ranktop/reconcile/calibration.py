"""Which release's plan fits the pool sizes that a log tells: row width, index layers, draft pool.

Used where the version is unknown or has no profile of its own, and shown beside every plan. A log prints sizes of 1e9
with two decimals, so a plan fits when every pool is within half of the last digit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ranktop.plan import GB, MODELS, PROFILES, LaunchRequest, compute_plan, profile_for
from ranktop.plan.geometry import index_row_bytes
from ranktop.plan.plan import HostPlan, Plan, PlanError, SglangVersion
from ranktop.reconcile.logged import HALF_DIGIT_BYTES, LoggedPool, LoggedServer, tag_of

_ROWS = (656, 1152, 576)
"""Bytes of a latent row in one layer: FP8 with scales, BF16, raw FP8 (facts: cases/plan-crosscheck)."""

_DRAFT = ("EAGLE", "NEXTN")


class Calibration(Struct, frozen=True):
    """What the logged sizes say. None where they do not tell."""

    row_bytes: int | None = None
    index_layers: int | None = None
    draft_row_bytes: int | None = None
    fits: str | None = None
    """The profile whose plan gives all logged sizes, the nearest to the version; None when none does."""
    also_fits: tuple[str, ...] = ()


class Fitted(NamedTuple):
    """The plan to hold this server against, and what the log's sizes said of it."""

    plan: Plan
    calibration: Calibration | None


def fit(
    plan: Plan, request: LaunchRequest, logged: LoggedServer, *, is_version_known: bool, arch: str | None
) -> Fitted:
    """`plan`, or that of the release whose sizes fit the log where the version is unknown or inexact."""
    if not usual_pools(logged) or plan.ranks[0].host is None:
        return Fitted(plan, None)
    fitting: list[tuple[str, Plan]] = []
    for profile in _by_nearness(plan.sglang.profile):
        other = plan if profile == plan.sglang.profile else _recomputed(request, profile, plan, arch)
        if other is not None and _fits(other, profile, logged):
            fitting.append((profile, other))
    if not fitting:
        exact = plan.sglang.exact and is_version_known
        told = replace(plan, sglang=replace(plan.sglang, exact=exact))
        return Fitted(told, _from_sizes(plan, logged))
    best, fitted = fitting[0]
    if best != plan.sglang.profile and not (plan.sglang.exact and is_version_known):
        version = plan.sglang.version if is_version_known else best
        plan = replace(fitted, sglang=SglangVersion(version, best, exact=False))
    host = fitted.ranks[0].host
    assert host is not None
    also = tuple(sorted((profile for profile, _ in fitting[1:]), key=list(PROFILES).index))
    return Fitted(plan, Calibration(host.row_bytes, host.index_layers or None, _draft_row(host), best, also))


def infer(logged: LoggedServer, version: str | None) -> LaunchRequest | None:
    """A launch that gives the logged pools, where nothing names the launch. None when the sizes fit no known model.

    Only models with an index pool are known by sizes alone: its share of the primary pool tells the row width.
    """
    usual = usual_pools(logged)
    primary = usual.get("host.primary")
    if primary is None or ("host.indexer" not in usual and logged.row_bytes not in _ROWS):
        return None
    try:
        profiles = _by_nearness(profile_for(version)[0].version)
    except PlanError:
        # A server may call its version anything.
        profiles = list(PROFILES)
    for request in _candidates(logged, primary.size_bytes, version):
        for profile in profiles:
            try:
                plan = compute_plan(request, version=profile, device_tokens=logged.capacity_tokens)
            except PlanError:
                continue
            if _fits(plan, profile, logged):
                return request
    return None


def usual_pools(logged: LoggedServer) -> Mapping[str, LoggedPool]:
    """By line, the pool of the size that most ranks logged: one odd rank must not move the plan."""
    found: dict[str, list[LoggedPool]] = {}
    for pools in logged.pools.values():
        for pool in pools:
            if pool.line != "host.other":
                found.setdefault(pool.line, []).append(pool)
    usual: dict[str, LoggedPool] = {}
    for line, told in found.items():
        size = Counter(pool.size_bytes for pool in told).most_common(1)[0][0]
        usual[line] = next(pool for pool in told if pool.size_bytes == size)
    return usual


def _candidates(logged: LoggedServer, primary_bytes: int, version: str | None) -> Iterator[LaunchRequest]:
    whole = round(primary_bytes / GB)
    size = whole if abs(primary_bytes - whole * GB) <= HALF_DIGIT_BYTES else primary_bytes / GB
    flags: dict[str, Any] = _parallelism(logged) | {"enable_hierarchical_cache": True, "hicache_size": size}
    if logged.layout:
        flags["hicache_mem_layout"] = logged.layout
    if logged.storage_backend:
        flags["hicache_storage_backend"] = logged.storage_backend
    usual = usual_pools(logged)
    if "host.draft" in usual or any(pool.is_packed for pool in usual.values()):
        flags["speculative_algorithm"] = "EAGLE"
    for model in MODELS.values():
        if model.attention != "dsa":
            continue
        for row in (logged.row_bytes,) if logged.row_bytes in _ROWS else _ROWS:
            yield LaunchRequest(
                flags | {"served_model_name": model.name} | _precision(row),
                origin="log",
                resolved=True,
                sglang_version=version,
            )


def _precision(row: int | None) -> dict[str, Any]:
    if row == 1152:
        return {"kv_cache_dtype": "bfloat16"}
    raw = {"dsa_prefill_backend": "trtllm", "dsa_decode_backend": "trtllm"} if row == 576 else {}
    return {"kv_cache_dtype": "fp8_e4m3"} | raw


def _parallelism(logged: LoggedServer) -> dict[str, Any]:
    """Sizes of the groups from the ranks' tags."""
    tags = [tag_of(text) for text in logged.pools]
    most = {
        name: 1 + max((getattr(tag, part) or 0 for tag in tags), default=0)
        for name, part in (
            ("tp_size", "tp"),
            ("pp_size", "pp"),
            ("dp_size", "dp"),
            ("attn_cp_size", "cp"),
            ("ep_size", "ep"),
        )
    }
    if most["dp_size"] > 1 and len({tag.tp for tag in tags}) == len(tags):
        # TP ranks number through all DP groups: attention is split, not the engine copied.
        most["enable_dp_attention"] = True
    return {name: value for name, value in most.items() if value != 1}


def _by_nearness(profile: str) -> list[str]:
    """All profiles, `profile` first, then its neighbours, older ones before younger ones."""
    names = list(PROFILES)
    own = names.index(profile)
    return sorted(names, key=lambda name: (abs(names.index(name) - own), names.index(name)))


def _recomputed(request: LaunchRequest, profile: str, plan: Plan, arch: str | None) -> Plan | None:
    try:
        return compute_plan(
            request, version=profile, model=plan.model, arch=arch, device_tokens=plan.ranks[0].device.pool_tokens
        )
    except PlanError:
        return None


def _fits(plan: Plan, profile: str, logged: LoggedServer) -> bool:
    """Whether most ranks logged what is planned, of every pool."""
    usual = usual_pools(logged)
    has_draft = plan.launch.speculative in _DRAFT
    # Below 0.5.18 the draft is a sidecar, and so it is taken to be until a `packed MTP` line is seen.
    if has_draft and PROFILES[profile].mtp_packed != any(pool.is_packed for pool in usual.values()):
        return False
    hosts = {rank.rank: rank.host for rank in plan.ranks}
    first = plan.ranks[0].host
    votes: dict[str, list[bool]] = {}
    for tag, pools in logged.pools.items():
        host = hosts.get(tag, first)
        planned = dict(checked_pools(host)) if host is not None else {}
        for pool in pools:
            if pool.line in usual:
                size = planned.get(pool.line) or 0
                votes.setdefault(pool.line, []).append(abs(pool.size_bytes - size) <= HALF_DIGIT_BYTES)
    if any(2 * sum(told) <= len(told) for told in votes.values()):
        return False
    # An excerpt may lack the index lines, but a draft that nobody logged is not there.
    return first is None or not first.draft_bytes or "host.draft" in usual


def checked_pools(host: HostPlan) -> tuple[tuple[str, int | None], ...]:
    """One rank's pools as SGLang checks and logs them, which for an index pool is less than it maps."""
    return (
        ("host.primary", host.primary_bytes),
        ("host.indexer", host.indexer_bytes),
        ("host.draft", host.draft_bytes),
        ("host.draft_indexer", host.draft_indexer_bytes),
    )


def _draft_row(host: HostPlan) -> int | None:
    """Row width of a draft model's own pool of one layer: it has the target's tokens, and at most a page more."""
    if not host.draft_bytes or not host.tokens or not host.pages:
        return None
    page = host.tokens // host.pages
    return next((row for row in _ROWS if host.draft_bytes in (row * host.tokens, row * (host.tokens + page))), None)


def _from_sizes(plan: Plan, logged: LoggedServer) -> Calibration:
    """No plan fits: what tokens and bytes alone say."""
    usual = usual_pools(logged)
    primary, indexer = usual.get("host.primary"), usual.get("host.indexer")
    host = plan.ranks[0].host
    if primary is None or host is None:
        return Calibration(logged.row_bytes)
    row, tokens = logged.row_bytes, primary.tokens
    if row is None and tokens:
        row = _nearest_row(primary.size_bytes / tokens / host.layers)
    if tokens is None and row:
        tokens = primary.size_bytes // (row * host.layers)
    index_row = index_row_bytes(plan.model)
    if indexer is None or not tokens or not index_row:
        return Calibration(row)
    return Calibration(row, round(indexer.size_bytes / tokens / index_row))


def _nearest_row(width: float) -> int | None:
    """The known width within half a percent."""
    return next((row for row in _ROWS if abs(width / row - 1) < 0.005), None)
