"""The launches of a server, one after the other, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ranktop.reconcile.ledger import Ledger
from ranktop.reconcile.verdict import RankVerdict, ServerVerdict
from ranktop.sample import Event, ServerInfo

KEPT = 12
"""Launches remembered of one server."""

_SAME_START_SECONDS = 5.0
_LOG_LAGS_SECONDS = 600.0
"""A launch logs its arguments this long after its process began, at most."""
_VOLATILE_NAMES = """
    random_seed nccl_port dist_init_addr host port grpc_port log_level log_level_http log_requests log_requests_level
    watchdog_timeout crash_dump_folder show_time_cost decode_log_interval internal_states scheduler_info startup_time
    launch_command kv_events version status
"""
_VOLATILE = frozenset(_VOLATILE_NAMES.split())
"""Fields of `/server_info` that say nothing of what the launch does, or differ at every start."""


class Launch(Struct, frozen=True):
    """One start of a server: what it was asked, what it got, and how it served until it ended.

    Shares and means are since the start. `args` are resolved arguments without secrets.
    """

    server: str
    started_unix_seconds: float
    version: str | None = None
    args: dict[str, Any] = {}
    l1_tokens: int | None = None
    l2_tokens: int | None = None
    host_pools_bytes: int | None = None
    """Sum over the ranks that were seen."""
    host_available_bytes: int | None = None
    device_hit: float | None = None
    host_hit: float | None = None
    storage_hit: float | None = None
    miss: float | None = None
    requests: float | None = None
    ttft_seconds: float | None = None
    e2e_seconds: float | None = None
    inter_token_seconds: float | None = None


class Change(NamedTuple):
    """One thing that differs: an argument by its field name, `version`, `l1_tokens`, `l2_tokens`."""

    name: str
    before: Any
    after: Any


def changes(before: Launch, after: Launch) -> tuple[Change, ...]:
    """What differs, arguments by name first. What either launch does not tell is no difference."""
    shared = sorted((set(before.args) & set(after.args)) - _VOLATILE)
    found = [Change(name, before.args[name], after.args[name]) for name in shared if _differ(before, after, name)]
    for name in ("version", "l1_tokens", "l2_tokens"):
        then, now = getattr(before, name), getattr(after, name)
        if then is not None and now is not None and then != now:
            found.append(Change(name, then, now))
    return tuple(found)


def present(
    server: ServerVerdict,
    info: ServerInfo | None,
    ranks: Sequence[RankVerdict],
    ledgers: Sequence[Ledger],
    host_available_bytes: int | None,
) -> Launch | None:
    """The launch that runs now; None while its start or its arguments are not known."""
    if server.started_unix_seconds is None or info is None or not info.args:
        return None
    totals = ledgers[-1] if ledgers else None
    pools = [line.mapped_bytes for rank in ranks for line in rank.pools if line.mapped_bytes]
    return Launch(
        server.id,
        server.started_unix_seconds,
        info.version,
        info.args,
        l1_tokens=info.max_total_num_tokens,
        l2_tokens=next((int(line.seen) for rank in ranks if (line := rank.line("l2.total")).seen), None),
        host_pools_bytes=sum(pools) if pools else None,
        host_available_bytes=host_available_bytes,
        **(_served(totals) if totals is not None else {}),
    )


def logged(server: str, start: Event) -> Launch:
    """The launch of a `server_args` line."""
    args = start.fields.get("args")
    return Launch(server, start.at_unix_seconds, args=args if isinstance(args, dict) else {})


def extend(known: Sequence[Launch], launch: Launch) -> tuple[Launch, ...]:
    """The launches with this one as the newest; the same start again only brings its figures up to date."""
    last = known[-1] if known else None
    if last is not None and abs(last.started_unix_seconds - launch.started_unix_seconds) <= _SAME_START_SECONDS:
        return (*known[:-1], _kept(last, launch))
    return (*known, launch)[-KEPT:]


def before_of(known: Sequence[Launch], starts: Sequence[Event], launch: Launch) -> Launch | None:
    """The launch before this one: remembered, or told by a log of which nothing nearer is remembered.

    The last of a log's `starts` is this launch's own, unless the log ends before it began.
    """
    limit = launch.started_unix_seconds - _SAME_START_SECONDS
    remembered = [one for one in known if one.args and one.started_unix_seconds < limit]
    newest = remembered[-1] if remembered else None
    since = newest.started_unix_seconds + _LOG_LAGS_SECONDS if newest is not None else 0.0
    earlier = starts[:-1] if starts and starts[-1].at_unix_seconds >= limit else starts
    told = [logged(launch.server, start) for start in earlier if start.at_unix_seconds > since]
    return next((one for one in reversed(told) if one.args), newest)


def _kept(last: Launch, launch: Launch) -> Launch:
    """A figure that is not read just now stays as it was."""
    missing = {
        name: value
        for name in launch.__struct_fields__
        if getattr(launch, name) is None and (value := getattr(last, name)) is not None
    }
    return replace(launch, **missing) if missing else launch


def _differ(before: Launch, after: Launch, name: str) -> bool:
    return _plain(before.args[name]) != _plain(after.args[name])


def _plain(value: Any) -> Any:
    """As both a log's repr and JSON would spell it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(child) for child in value]
    return value


def _served(totals: Ledger) -> dict[str, float | None]:
    tokens = {
        "device_hit": totals.device_hit_tokens,
        "host_hit": totals.host_hit_tokens,
        "storage_hit": totals.storage_hit_tokens,
        "miss": totals.input_tokens,
    }
    whole = sum(value or 0.0 for value in tokens.values())
    shares = {name: value / whole if value is not None and whole else None for name, value in tokens.items()}
    return {
        **shares,
        "requests": totals.finished_requests,
        "ttft_seconds": _mean(totals.ttft_seconds_sum, totals.ttft_count),
        "e2e_seconds": _mean(totals.e2e_seconds_sum, totals.e2e_count),
        "inter_token_seconds": _mean(totals.inter_token_seconds_sum, totals.inter_token_count),
    }


def _mean(total: float | None, count: float | None) -> float | None:
    return total / count if total is not None and count else None
