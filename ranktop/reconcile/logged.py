"""What one server's log has said since its newest start: arguments, pools by rank, capacity, readiness.

Pure folding of the events of `collectors/serverlog_lines.py`. Host pools are logged in GB of 1e9 with two decimals;
SGLang until 0.5.17 prints no token count beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ranktop.sample import Event, RankTag

HALF_DIGIT_BYTES = 5_000_000
"""Half of the last digit that SGLang prints of a host pool."""

_SIDECAR_SHARE = 0.2
"""A second `hierarchical KV cache` line of a rank below this share of its first is a draft model's pool."""

_MAX_GIB = 1 << 20
_MAX_COUNTED = 256
_MAX_POOLS = 64

_TAG_PART = re.compile(r"(DP|PP|ATTN_CP|MOE_DP|TP|EP)(\d+)\Z")
_TAG_FIELDS = {"DP": "dp", "PP": "pp", "ATTN_CP": "cp", "MOE_DP": "moe_dp", "TP": "tp", "EP": "ep"}


class LoggedPool(Struct, frozen=True):
    """One host pool as logged, in the order in which its rank allocated it."""

    line: str
    """The line it belongs to (`host.primary`, ...); `host.other` for a pool that the plan does not know."""
    size_bytes: int
    tokens: int | None = None
    is_packed: bool = False
    """NextN layers lie in this pool (`packed MTP`)."""
    label: str = ""


class LoggedServer(Struct, frozen=True):
    """One server by its log alone."""

    args: dict[str, Any] | None = None
    args_unix_seconds: float | None = None
    launch: str | None = None
    """A launch line that was given beside the log."""
    pools: dict[str, tuple[LoggedPool, ...]] = {}
    """By rank tag. Lines without a tag are counted out to ranks in order, as one rank logs each pool once."""
    counted: dict[str, int] = {}
    """By line: how many lines without a tag were counted out so."""
    capacity_tokens: int | None = None
    row_bytes: int | None = None
    layout: str | None = None
    storage_backend: str | None = None
    device_free_bytes: dict[str, int] = {}
    """By rank tag: what the newest of its lines said to be available on its GPU."""
    is_ready: bool = False
    tags: frozenset[str] = frozenset()
    """Every rank tag that any line carried."""


def fold(known: LoggedServer, events: Iterable[Event]) -> LoggedServer:
    """`known` and what these events add. A `server_args` line after pools were logged is a new start."""
    for event in events:
        if event.rank is not None and event.rank not in known.tags:
            known = replace(known, tags=known.tags | {event.rank})
        free_gib = event.fields.get("avail_gib")
        if isinstance(free_gib, int | float) and 0 <= free_gib < _MAX_GIB:
            free = known.device_free_bytes | {event.rank or "TP0": round(free_gib * (1 << 30))}
            known = replace(known, device_free_bytes=free)
        step = _STEPS.get(event.kind)
        if step is not None:
            known = step(known, event)
    return known


def pool_bytes(pools: Iterable[LoggedPool], line: str) -> int | None:
    """Bytes logged for one line; None when that pool was not logged."""
    return next((pool.size_bytes for pool in pools if pool.line == line), None)


def tag_of(text: str) -> RankTag:
    """The tag of its printed form, `DP0 ATTN_CP3 TP7`."""
    parts = (match for word in text.split() if (match := _TAG_PART.match(word)))
    return RankTag(**{_TAG_FIELDS[part[1]]: int(part[2]) for part in parts})


def _args(known: LoggedServer, event: Event) -> LoggedServer:
    args = event.fields.get("args")
    started = LoggedServer(args=args, args_unix_seconds=event.at_unix_seconds, launch=known.launch)
    if known.args_unix_seconds is not None and event.at_unix_seconds < known.args_unix_seconds:
        return known
    return started


def _capacity(known: LoggedServer, event: Event) -> LoggedServer:
    tokens = event.fields.get("tokens")
    return replace(known, capacity_tokens=tokens) if isinstance(tokens, int) and tokens > 0 else known


def _primary(known: LoggedServer, event: Event) -> LoggedServer:
    size = _bytes(event)
    if size is None:
        return known
    if event.rank is None:
        first = pool_bytes(known.pools.get("TP0", ()), "host.primary") or 0
        line = "host.draft" if size < first * _SIDECAR_SHARE else "host.primary"
        return _with_counted(known, _pool(line, size, event))
    first = pool_bytes(known.pools.get(event.rank, ()), "host.primary")
    if first is None:
        return _with_pool(known, event.rank, _pool("host.primary", size, event))
    line = "host.draft" if size < first * _SIDECAR_SHARE else "host.other"
    return _with_pool(known, event.rank, _pool(line, size, event))


def _indexer(known: LoggedServer, event: Event) -> LoggedServer:
    size = _bytes(event)
    if size is None:
        return known
    layout = event.fields.get("layout")
    known = replace(known, layout=layout) if isinstance(layout, str) else known
    if event.rank is None:
        return _with_counted(known, _pool("host.indexer", size, event))
    has_one = pool_bytes(known.pools.get(event.rank, ()), "host.indexer") is not None
    line = "host.draft_indexer" if has_one else "host.indexer"
    return _with_pool(known, event.rank, _pool(line, size, event))


def _other(known: LoggedServer, event: Event) -> LoggedServer:
    size = _bytes(event)
    if size is None:
        return known
    return _with_pool(known, event.rank or "TP0", _pool("host.other", size, event))


def _jit(known: LoggedServer, event: Event) -> LoggedServer:
    row = event.fields.get("row_bytes")
    return replace(known, row_bytes=row) if isinstance(row, int) and known.row_bytes is None else known


def _storage(known: LoggedServer, event: Event) -> LoggedServer:
    backend = event.fields.get("backend")
    return replace(known, storage_backend=backend) if isinstance(backend, str) else known


def _launch(known: LoggedServer, event: Event) -> LoggedServer:
    return replace(known, launch=event.text)


def _ready(known: LoggedServer, event: Event) -> LoggedServer:
    return replace(known, is_ready=True)


_STEPS = {
    "server_args": _args,
    "capacity": _capacity,
    "host_pool": _primary,
    "host_indexer": _indexer,
    "host_pool_other": _other,
    "jit_fallback": _jit,
    "storage": _storage,
    "ready": _ready,
    "launch": _launch,
}


def _with_pool(known: LoggedServer, tag: str, pool: LoggedPool) -> LoggedServer:
    pools = known.pools.get(tag, ())
    if len(pools) >= _MAX_POOLS:
        return known
    return replace(known, pools=known.pools | {tag: (*pools, pool)})


def _with_counted(known: LoggedServer, pool: LoggedPool) -> LoggedServer:
    """The first rank of the count that has not logged this pool yet."""
    number = known.counted.get(pool.line, 0)
    if number >= _MAX_COUNTED:
        return known
    return _with_pool(replace(known, counted=known.counted | {pool.line: number + 1}), f"TP{number}", pool)


def _pool(line: str, size_bytes: int, event: Event) -> LoggedPool:
    tokens = event.fields.get("tokens")
    return LoggedPool(
        line,
        size_bytes,
        tokens if isinstance(tokens, int) else None,
        event.fields.get("draft_layers") is not None,
        str(event.fields.get("label") or ""),
    )


def _bytes(event: Event) -> int | None:
    size = event.fields.get("size_gb")
    return round(size * 10**9) if isinstance(size, int | float) and 0 <= size < 10**9 else None
