"""What a server was started with, against before and beside: LAUNCH-CHANGED, LAUNCH-DRIFT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from ranktop.clock import iso_utc
from ranktop.finding import Finding
from ranktop.reconcile.launches import Change, Launch, before_of, changes
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.verdict import ServerVerdict

_MAX_TOLD = 4
_PAIR = (
    "model_path",
    "revision",
    "page_size",
    "kv_cache_dtype",
    "disaggregation_transfer_backend",
    "speculative_algorithm",
    "dtype",
)
"""Arguments that a prefill and a decode server must share. Parallel sizes, backends and cache sizes may differ."""


def launch_changed(context: Context) -> Iterator[Finding]:
    """This start differs from the one before: which flags, version and capacities, and how each served."""
    for server in context.servers:
        known = context.launches.get(server.id, ())
        if not known:
            continue
        now = known[-1]
        before = before_of(known[:-1], context.log.starts(server.id), now)
        differing = changes(before, now) if before is not None else ()
        if before is None or not differing:
            continue
        yield Finding(
            "LAUNCH-CHANGED",
            "info",
            f"this start differs from the one before: {_told(differing)}",
            scope="server",
            server=server.id,
            **evidence(
                "reported",
                changes=[{"name": one.name, "before": one.before, "after": one.after} for one in differing],
                before_started=iso_utc(before.started_unix_seconds),
                before=_figures(before),
                after=_figures(now),
            ),
            advice="compare hit shares, pools and headroom before and after at the same load; to go back, start with "
            "the values under `before`",
        )


def launch_drift(context: Context) -> Iterator[Finding]:
    """Ranks of one server, or the two roles of one deployment, run with values that must be the same."""
    for server in context.servers:
        yield from _ranks_differ(context, server)
    roles = [server for server in context.servers if server.role in ("prefill", "decode")]
    for one, other in combinations(roles, 2):
        if one.role != other.role:
            yield from _roles_differ(context, one, other)


def _ranks_differ(context: Context, server: ServerVerdict) -> Iterator[Finding]:
    """By the log: the KV dtype of every rank's L1 pool. A draft model's pool has a label and may have another."""
    logged = context.log.all_of(server.id, "l1_pool")
    # Nearly always all ranks have logged the same.
    if len({dtype for event in logged if isinstance(dtype := event.fields.get("dtype"), str)}) < 2:
        return
    by_rank: dict[str, str] = {}
    for event in logged:
        dtype = event.fields.get("dtype")
        if event.rank is not None and isinstance(dtype, str) and not event.fields.get("label"):
            by_rank.setdefault(event.rank, dtype)
    counts = Counter(by_rank.values())
    if len(counts) < 2:
        return
    usual = max(counts, key=lambda dtype: counts[dtype])
    for rank, dtype in by_rank.items():
        if dtype != usual:
            yield Finding(
                "LAUNCH-DRIFT",
                "breach",
                f"KV cache of {dtype}, its peers' is {usual}",
                scope="rank",
                server=server.id,
                rank=rank,
                **evidence("logged", kv_cache_dtype=dtype, peers_kv_cache_dtype=usual),
                advice="this rank runs another image or other flags than its peers: compare the image digest and "
                "--kv-cache-dtype of its node, then restart the server",
            )


def _roles_differ(context: Context, one: ServerVerdict, other: ServerVerdict) -> Iterator[Finding]:
    infos = context.sample.infos
    if one.id not in infos or other.id not in infos:
        return
    first, second = infos[one.id], infos[other.id]
    if first.served_model_name != second.served_model_name:
        # Two deployments on one node.
        return
    differing = [
        Change(name, first.args[name], second.args[name]) for name in _PAIR if _both(first.args, second.args, name)
    ]
    if first.version and second.version and first.version != second.version:
        differing.append(Change("version", first.version, second.version))
    if not differing:
        return
    yield Finding(
        "LAUNCH-DRIFT",
        "breach",
        f"{one.role} server {one.id} and this {other.role} server differ in {_told(tuple(differing))}",
        scope="server",
        server=other.id,
        **evidence(
            "reported",
            other_server=one.id,
            differences=[
                {"name": each.name, one.role or "": each.before, other.role or "": each.after} for each in differing
            ],
        ),
        advice="each role must be able to read the KV that the other writes: start both from the same image, revision "
        "and cache flags",
    )


def _both(first: Mapping[str, Any], second: Mapping[str, Any], name: str) -> bool:
    return name in first and name in second and first[name] != second[name]


def _told(differing: tuple[Change, ...]) -> str:
    told = ", ".join(f"{one.name} {one.before} -> {one.after}" for one in differing[:_MAX_TOLD])
    return told + (f" and {len(differing) - _MAX_TOLD} more" if len(differing) > _MAX_TOLD else "")


def _figures(launch: Launch) -> dict[str, float]:
    names = (
        "device_hit",
        "host_hit",
        "storage_hit",
        "miss",
        "l1_tokens",
        "l2_tokens",
        "host_pools_bytes",
        "host_available_bytes",
        "ttft_seconds",
        "e2e_seconds",
    )
    values = {name: getattr(launch, name) for name in names}
    return {name: round(value, 4) for name, value in values.items() if value is not None}
