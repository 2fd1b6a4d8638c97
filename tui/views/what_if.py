"""What if: another size, ratio, layout or rank count beside the present plan, before touching the server."""

from __future__ import annotations

from typing import Any

from ranktop.plan import LaunchRequest, compute_plan, parse_launch
from ranktop.plan.plan import Plan, PlanError
from ranktop.reconcile.verdict import ServerVerdict, Verdict
from tui.draw import numbers
from tui.draw.spans import Span, fit, line, paragraph, plain
from tui.draw.table import Cell, Col, table
from tui.views.view import Frame, Page, RankTarget, Row

_COLUMNS = (
    Col("", 30, align_left=True),
    Col("now", 12),
    Col("what if", 12),
    Col("difference", 12),
    Col("", 0, align_left=True, grow=True),
)


class WhatIf:
    """Opened with `w`: flags typed by the user over those of the running launch."""

    key = ""
    name = "what if"

    def __init__(self, changes: str) -> None:
        self._changes = changes

    def draw(self, frame: Frame) -> Page:
        server = planned_server(frame.verdict, frame.rank)
        width, more = frame.width, frame.glyphs.more
        head = fit(line(Span(" what if ", "muted"), Span(plain(self._changes), "accent")), width, more)
        if server is None or server.plan is None:
            return Page((head,), (Row(line(Span("  no plan to change: no launch seen", "muted"))),))
        try:
            other = changed_plan(server.plan, self._changes, _device_tokens(frame.verdict, server.id))
        except PlanError as problem:
            return Page((head,), _wrapped(plain(str(problem)), "warn", width))
        header, body = table(_COLUMNS, _rows(server.plan, other, frame), width, more)
        notes = [row for text, role in _notes(other) for row in _wrapped(text, role, width)]
        fits = _wrapped(*_fits(server.plan, other, frame.verdict), width)
        return Page((head, header), (*(Row(each) for each in body), Row(line(" ")), *fits, *notes))


def _wrapped(text: str, role: str, width: int) -> tuple[Row, ...]:
    """Whole: what SGLang would make of the flags, or why they can't be, is what was asked for."""
    return tuple(map(Row, paragraph(text, width, role)))


def planned_server(verdict: Verdict, rank: RankTarget | None) -> ServerVerdict | None:
    """The server of the chosen rank, else the first with a plan."""
    planned = [server for server in verdict.servers if server.plan is not None]
    chosen = (server for server in planned if rank is not None and server.id == rank.server)
    return next(chosen, planned[0] if planned else None)


def changed_plan(plan: Plan, changes: str, device_tokens: int | None) -> Plan:
    """The plan of the running launch with these flags over it. Raises PlanError for impossible values."""
    changed = parse_launch(changes)
    if changed.unknown_flags:
        raise PlanError(
            f"{' '.join(changed.unknown_flags)}: no flag of SGLang that ranktop knows (like --hicache-size 96)"
        )
    flags = _flags_of(plan) | changed.flags
    if "hicache_ratio" in changed.flags and "hicache_size" not in changed.flags:
        flags.pop("hicache_size", None)
    request = LaunchRequest(flags=flags, origin="given")
    return compute_plan(request, version=plan.sglang.version, model=plan.model, device_tokens=device_tokens)


def _flags_of(plan: Plan) -> dict[str, Any]:
    """The running launch as flags, by SGLang's names."""
    launch = plan.launch
    flags: dict[str, Any] = {
        "tp_size": launch.tp_size,
        "pp_size": launch.pp_size,
        "dp_size": launch.dp_size,
        "kv_cache_dtype": launch.kv_cache_dtype,
        "enable_hierarchical_cache": launch.hicache,
        "hicache_size": launch.hicache_size_gb,
        "hicache_ratio": launch.hicache_ratio,
        "hicache_write_policy": launch.write_policy,
        "hicache_io_backend": launch.io_backend,
        "hicache_mem_layout": launch.mem_layout,
        "hicache_storage_backend": launch.storage_backend,
        "speculative_algorithm": launch.speculative,
    }
    if launch.role != "unified":
        flags["disaggregation_mode"] = launch.role
    if launch.layer_split:
        flags |= {"enable_dsa_cache_layer_split": True, "enable_prefill_cp": True, "cp_strategy": "interleave"}
    return {name: value for name, value in flags.items() if value is not None}


def _device_tokens(verdict: Verdict, server: str) -> int | None:
    for rank in verdict.ranks:
        seen = rank.line("l1.tokens").seen
        if rank.server == server and seen is not None:
            return int(seen)
    return None


def _rows(now: Plan, other: Plan, frame: Frame) -> list[list[Cell]]:
    missing = frame.glyphs.missing
    rows: list[list[Cell]] = []

    def add(name: str, before: float | None, after: float | None, text: Any) -> None:
        difference = after - before if before is not None and after is not None else None
        sign = "" if not difference else "+" if difference > 0 else "-"
        rows.append(
            [
                Span(name, "muted"),
                missing if before is None else text(before),
                Span(missing if after is None else text(after), "strong"),
                Span("" if not difference else f"{sign}{text(abs(difference))}", "text"),
                "",
            ]
        )

    one, two = now.ranks[0], other.ranks[0]
    for name, field, text in (
        ("L2 tokens a rank", "tokens", _count),
        ("primary pool a rank", "primary_bytes", _size),
        ("indexer pool a rank", "indexer_allocated_bytes", _size),
        ("both, as allocated", "allocated_bytes", _size),
    ):
        before = getattr(one.host, field) if one.host else None
        after = getattr(two.host, field) if two.host else None
        add(name, before, after, text)
    add("ranks on this node", now.node.ranks, other.node.ranks, _count)
    add("all pools of this node", now.node.allocated_bytes, other.node.allocated_bytes, _size)
    add("host gate passes surely from", now.node.surely_fits_bytes, other.node.surely_fits_bytes, _size)
    add("layers a rank owns", one.layers.owned, two.layers.owned, _count)
    add("L1 bytes a token", one.device.bytes_per_token, two.device.bytes_per_token, _count)
    return rows


def _fits(now: Plan, other: Plan, verdict: Verdict) -> tuple[str, str]:
    """Against this host, with the memory of the running pools given back first."""
    available = verdict.node.line("host.available").seen
    needed, held = other.node.allocated_bytes, verdict.node.line("host.pools").seen or 0
    if available is None or needed is None:
        return "whether it fits is not known: host memory or the pool size is missing", "muted"
    room = int(available) + int(held)
    left = room - needed
    answer, role, rest = ("fits", "ok", "left") if left >= 0 else ("does not fit", "breach", "missing")
    have = f"{_size(needed)} needed, {_size(room)} available once the present pools are gone"
    return f"{answer}: {have}, {_size(abs(left))} {rest}", role


def _notes(plan: Plan) -> list[tuple[str, str]]:
    notes = [
        (f"{rewrite.flag}: {rewrite.requested} becomes {rewrite.resolved}: {rewrite.why}", "warn")
        for rewrite in plan.launch.rewritten
    ]
    notes += [
        (f"{finding.code} {finding.message}", finding.severity)
        for finding in plan.findings
        if finding.severity != "info"
    ]
    return [(plain(text), role) for text, role in notes]


def _size(value: float) -> str:
    return f"{value / 1e9:.2f} GB" if abs(value) >= 1e9 else numbers.size(value, "")


def _count(value: float) -> str:
    return f"{value:,.0f}"
