"""The JSON documents of contracts.md, from verdicts."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import asdict

from ranktop.clock import iso_utc
from ranktop.printable import printable
from ranktop.reconcile.verdict import Line, Phase, RankVerdict, ServerVerdict, Verdict
from ranktop.sample import SourceState


def check_document(verdict: Verdict, window_seconds: float | None) -> dict[str, Any]:
    """`check --json`."""
    sample = verdict.sample
    return {
        "schema": 1,
        "at": iso_utc(sample.at_unix_seconds),
        "host": sample.host_name,
        "window_seconds": window_seconds,
        "headline": verdict.headline,
        "sources": [_source(state, sample.at_unix_seconds) for state in sample.sources],
        "servers": [_server(server) for server in verdict.servers],
        "node": {"lines": [_line(line) for line in verdict.node.lines]},
        "ranks": [_rank(rank) for rank in verdict.ranks],
        "tiers": msgspec.to_builtins(verdict.tiers),
        "routers": msgspec.to_builtins(verdict.routers),
        "phases": [_phase(phase) for phase in verdict.phases],
        "findings": [msgspec.to_builtins(finding) for finding in verdict.findings],
    }


def encode(document: Any) -> str:
    """One JSON document for standard output; what could drive a terminal is escaped."""
    return printable(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def _source(state: SourceState, now: float) -> dict[str, Any]:
    age = now - state.at_unix_seconds if state.at_unix_seconds is not None else None
    return {
        "name": state.name,
        "server": state.server,
        "state": state.state,
        "code": state.code,
        "age_seconds": _rounded(age),
        "took_seconds": _rounded(state.took_seconds),
        "detail": state.detail,
    }


def _server(server: ServerVerdict) -> dict[str, Any]:
    return {
        "id": server.id,
        "pid": server.pid,
        "url": server.url,
        "version": server.version,
        "model": server.model,
        "role": server.role,
        "ranks": server.ranks,
        "ready": server.is_ready,
        "plan": msgspec.to_builtins(server.plan),
        "plan_origin": server.plan_origin,
        "plan_error": server.plan_error,
        "calibration": msgspec.to_builtins(server.calibration),
        "tiers": msgspec.to_builtins(server.tiers),
        "transfers": msgspec.to_builtins(server.transfers),
        "service": msgspec.to_builtins(server.service),
        "load": msgspec.to_builtins(server.load),
        "acceptance": msgspec.to_builtins(server.acceptance),
        "traffic": msgspec.to_builtins(server.traffic),
        "handoff": msgspec.to_builtins(server.handoff),
        "prefetches": msgspec.to_builtins(server.prefetches),
    }


def _rank(rank: RankVerdict) -> dict[str, Any]:
    return {
        "server": rank.server,
        "rank": rank.rank,
        "pid": rank.pid,
        "gpu": rank.gpu,
        "cuda_index": rank.cuda_index,
        "numa": rank.numa,
        "state": rank.state,
        "lines": [_line(line) for line in rank.lines],
        "peaks": msgspec.to_builtins(rank.peaks),
    }


def _phase(phase: Phase) -> dict[str, Any]:
    return {
        "phase": phase.phase,
        "at": iso_utc(phase.at_unix_seconds),
        "server": phase.server,
        "rank": phase.rank,
        "source": phase.source,
        "at_or_before": phase.at_or_before,
    }


def _line(line: Line) -> dict[str, Any]:
    document = asdict(line)
    for flag in ("group", "stale"):
        if not document[flag]:
            del document[flag]
    if document["mapped_bytes"] is None:
        del document["mapped_bytes"]
    return document


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
