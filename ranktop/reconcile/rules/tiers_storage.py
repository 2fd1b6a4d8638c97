"""Storage (L3) as an attachment: L3-ATTACH-SPLIT, L3-SHARED-MISMATCH."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from ranktop.finding import Finding
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import Context

_MUST_AGREE = ("revision", "page_size", "kv_cache_dtype", "tp_size", "chat_template", "dtype", "quantization")


def attach_split(context: Context) -> Iterator[Finding]:
    """Storage is attached on some DP groups only: by its series, or by the log of an attachment at run time."""
    for server in context.servers:
        yield from _by_series(context, server.id)
        yield from _by_log(context, server.id)


def shared_mismatch(context: Context) -> Iterator[Finding]:
    """Two servers of this node use one storage for one model, and would write what the other must not read."""
    sharing = [
        (server.id, context.sample.infos[server.id].args)
        for server in context.servers
        if server.id in context.sample.infos and _storage(context.sample.infos[server.id].args) is not None
    ]
    for (one, first), (other, second) in combinations(sharing, 2):
        if _storage(first) != _storage(second) or first.get("model_path") != second.get("model_path"):
            continue
        differing = [name for name in _MUST_AGREE if name in first and name in second and first[name] != second[name]]
        if not differing:
            continue
        told = ", ".join(f"{name} {first[name]!r} and {second[name]!r}" for name in differing)
        yield Finding(
            "L3-SHARED-MISMATCH",
            "breach",
            f"{one} and {other} share {first['hicache_storage_backend']} storage and differ in {told}",
            scope="server",
            server=other,
            **evidence("reported", storage=first["hicache_storage_backend"], other_server=one, differing=differing),
            advice="give each its own namespace or directory in --hicache-storage-backend-extra-config, or relaunch "
            "one of them with the other's values",
        )


def _by_series(context: Context, server: str) -> Iterator[Finding]:
    kept = context.ledgers.get(server, ())
    if not kept or len(kept[-1].group_input_tokens) < 2:
        return
    newest = kept[-1]
    least = context.thresholds.split_input_tokens
    # A counter appears with its first event: only a group that has computed much must have written by now.
    busy = {group for group, tokens in newest.group_input_tokens.items() if tokens >= least}
    without = sorted(busy - newest.storage_groups)
    if newest.storage_groups and without:
        yield _split(server, sorted(newest.storage_groups), without, "reported")


def _by_log(context: Context, server: str) -> Iterator[Finding]:
    attached = {
        rank: event
        for rank, event in context.log.newest(server, "storage").items()
        if rank is not None and event.text.startswith("Attached")
    }
    groups = {_group(rank.rank) for rank in context.ranks_of(server)}
    having = {_group(rank) for rank in attached}
    if not having or not groups - having:
        return
    newest = max(event.at_unix_seconds for event in attached.values())
    if context.sample.at_unix_seconds - newest >= context.thresholds.attach_seconds or context.since_start:
        yield _split(server, sorted(having), sorted(groups - having), "logged")


def _split(server: str, having: list[str], without: list[str], source: str) -> Finding:
    names = ", ".join(f"DP{group}" for group in without)
    return Finding(
        "L3-ATTACH-SPLIT",
        "breach",
        f"storage is attached on {len(having)} of {len(having) + len(without)} DP groups, not on {names}",
        scope="server",
        server=server,
        **evidence(source, attached_groups=having, missing_groups=without),
        advice="an attachment that fails on some groups is not rolled back, and the HTTP answer does not tell: drain "
        "this server and restart it with --hicache-storage-backend in the launch",
    )


def _storage(args: Mapping[str, Any]) -> tuple[str, str] | None:
    backend = args.get("hicache_storage_backend")
    return (str(backend), str(args.get("hicache_storage_backend_extra_config"))) if backend else None


def _group(rank: str) -> str:
    """The DP number of a tag, `0` where SGLang prints none."""
    first = rank.split(" ")[0]
    return first[2:] if first.startswith("DP") else "0"
