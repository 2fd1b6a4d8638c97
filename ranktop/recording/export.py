"""Recordings as tables for other programs: one row per sample and rank, every number with its unit in the header."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ranktop.clock import iso_utc
from ranktop.finding import worst
from ranktop.reconcile.verdict import Line, RankVerdict, Verdict

KEYS = ("time", "unix_seconds", "server", "rank")
"""The columns that every export has."""

_TIER_SHARES = ("device_hit", "host_hit", "storage_hit", "miss")
_LATENCIES = ("ttft_seconds", "inter_token_seconds", "e2e_seconds")
Row = dict[str, Any]


class Selection(NamedTuple):
    """Ranks by their tag (none: all) and fields by name or pattern (none: all)."""

    ranks: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    def has_rank(self, rank: str) -> bool:
        """Whether rows of that rank are wanted."""
        return not self.ranks or rank in self.ranks

    def fields_of(self, columns: Iterable[str]) -> list[str]:
        """The wanted columns in their order, the keys first. A pattern may leave the unit out."""
        wanted = [column for column in columns if column not in KEYS and self._has_field(column)]
        return [*KEYS, *wanted]

    def _has_field(self, column: str) -> bool:
        names = (column, column.partition(" [")[0])
        return not self.fields or any(fnmatch.fnmatchcase(name, field) for name in names for field in self.fields)


def rows(verdicts: Iterable[tuple[int, Verdict]], selection: Selection) -> Iterator[Row]:
    """One dict per sample and rank; a sample without ranks gives one row with an empty rank.

    Names: `host.primary [bytes]` is what was seen, `host.primary.planned [bytes]` what was planned; lines of the node
    stand under `node.`; `ttft_seconds.p99 [seconds]` and the like are the server's.
    """
    for seq, verdict in verdicts:
        at = verdict.sample.at_unix_seconds
        shared = {"sample": seq, **_node(verdict)}
        servers = {server.id: _server(verdict, server.id) for server in verdict.servers}
        for rank in verdict.ranks:
            if selection.has_rank(rank.rank):
                keys = {"time": iso_utc(at), "unix_seconds": at, "server": rank.server, "rank": rank.rank}
                yield {**keys, **shared, **servers.get(rank.server, {}), **_rank(verdict, rank)}
        if not verdict.ranks and not selection.ranks:
            yield {"time": iso_utc(at), "unix_seconds": at, "server": "", "rank": "", **shared}


def columns(found: Iterable[Row]) -> list[str]:
    """All columns of these rows, in the order in which they appear."""
    return list(dict.fromkeys(name for row in found for name in row))


def selected(row: Row, fields: Sequence[str]) -> list[Any]:
    """The values of these columns, None where the row has none."""
    return [row.get(name) for name in fields]


def _rank(verdict: Verdict, rank: RankVerdict) -> Row:
    own = [finding for finding in verdict.findings if finding.server == rank.server and rank.rank in finding.ranks]
    found: Row = {"pid": rank.pid, "gpu": rank.gpu, "cuda_index": rank.cuda_index, "numa": rank.numa}
    found |= {"state": rank.state, "severity": worst(own), "findings": " ".join(finding.code for finding in own)}
    for line in rank.lines:
        found |= _line(line, "")
    return found


def _node(verdict: Verdict) -> Row:
    found: Row = {"node.severity": worst(verdict.findings)}
    for line in verdict.node.lines:
        found |= _line(line, "node.")
    return found


def _server(verdict: Verdict, identity: str) -> Row:
    server = next(server for server in verdict.servers if server.id == identity)
    found: Row = {f"tiers.{name} [ratio]": getattr(server.tiers, name) for name in _TIER_SHARES}
    found["tiers.window [tokens]"] = server.tiers.window_tokens
    for name in _LATENCIES:
        latency = getattr(server.service, name)
        for quantile in ("p50", "p95", "p99"):
            found[f"{name.removesuffix('_seconds')}.{quantile} [seconds]"] = getattr(latency, quantile)
    found["tokens_per_second [tokens_per_second]"] = server.service.tokens_per_second
    found["running [count]"] = server.service.running
    found["queued [count]"] = server.service.queued
    return found


def _line(line: Line, prefix: str) -> Row:
    found: Row = {f"{prefix}{line.line} [{line.unit}]": line.seen}
    if line.planned is not None:
        found[f"{prefix}{line.line}.planned [{line.unit}]"] = line.planned
        found[f"{prefix}{line.line}.status"] = line.status
    return found
