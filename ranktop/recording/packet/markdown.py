"""The packet for people. Text from outside stands in code spans or is escaped: it is never markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ranktop.clock import iso_utc
from ranktop.recording.packet.checklist import CHECKS, Done
from ranktop.recording.packet.packet import NOT_SHOWN, Packet, RecordingPart

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#])")


def markdown(packet: Packet) -> str:
    """The whole document."""
    return "\n".join(_lines(packet)) + "\n"


def checklist_text(done: Iterable[Done] = ()) -> str:
    """The test lists with their signs, and what the recordings show of each."""
    known = {one.id: one for one in done}
    lines: list[str] = []
    group = ""
    for check in CHECKS:
        if check.group != group:
            group = check.group
            lines += ["", f"## {group}", ""]
        one = known.get(check.id)
        status = NOT_SHOWN if one is None else one.status
        codes = f"; alarm: {', '.join(check.codes)}" if check.codes else ""
        lines.append(f"- {check.id} [{status}] {check.test}. Sign: {check.sign}{codes}")
        if one is not None and one.marked:
            lines.append(f"  - marked: {_text('; '.join(one.marked))}")
            lines += [f"  - near it: {_text(found)}" for found in one.findings_after]
    return "\n".join(lines).strip()


def _lines(packet: Packet) -> Iterator[str]:
    yield "# Promotion packet"
    yield ""
    yield "## Not shown"
    yield ""
    yield from _items(packet.not_shown)
    for part in packet.recordings:
        yield from _part(part)
    yield ""
    yield "## Manifest"
    yield ""
    yield _code(packet.manifest) if packet.manifest is not None else NOT_SHOWN
    yield ""
    yield "## Attached by others, quoted and not judged"
    yield ""
    for attachment in packet.attachments:
        yield f"- {_text(attachment.name)}: {attachment.size_bytes} bytes, sha256 `{attachment.sha256}`"
        yield ""
        yield _code(attachment.content)
    if not packet.attachments:
        yield NOT_SHOWN
    yield ""
    yield "# Checklist"
    yield ""
    yield checklist_text(packet.checklist)


def _part(part: RecordingPart) -> Iterator[str]:
    trial = part.trial
    yield ""
    yield f"## {_text(part.label)}: {_text(trial.name)}"
    yield ""
    yield f"sha256 `{part.sha256}`, {trial.samples} samples over {trial.seconds:.0f} s, {trial.missing_samples} missing"
    yield ""
    yield f"SGLang {_text(trial.version)}, model {_text(trial.model)}, {trial.ranks} ranks"
    yield ""
    yield "| rank | pid | gpu | numa | layers | primary seen / planned | indexer seen / planned | HBM process / total |"
    yield "|---|---|---|---|---|---|---|---|"
    for rank in part.ranks:
        yield (
            f"| {_text(rank.server)} {rank.rank} | {_value(rank.pid)} | {_value(rank.gpu)} | {_value(rank.numa)} "
            f"| {_value(rank.layers)} | {_gb(rank.primary_seen_bytes)} / {_gb(rank.primary_planned_bytes)} "
            f"| {_gb(rank.indexer_seen_bytes)} / {_gb(rank.indexer_planned_bytes)} "
            f"| {_gb(rank.hbm_process_bytes)} / {_gb(rank.hbm_total_bytes)} |"
        )
    yield ""
    yield from _populations(part)
    yield ""
    yield f"Rollback: {part.rollback.at or NOT_SHOWN}"
    yield ""
    yield from _items([*part.rollback.shown, *(f"{NOT_SHOWN}: {what}" for what in part.rollback.not_shown)])
    yield ""
    yield f"L2: {part.l2_proof.claim}"
    yield ""
    yield from _items([*part.l2_proof.shown, *(f"{NOT_SHOWN}: {what}" for what in part.l2_proof.not_shown)])
    yield ""
    yield "Marks and what opened within two minutes:"
    yield ""
    yield from _items(
        f"{one.at} {one.text}: {', '.join(one.opened) or 'nothing'}"
        + ("" if one.closed_again is None else ", closed again" if one.closed_again else ", still open at the end")
        for one in part.injections
    )
    yield ""
    yield "Findings:"
    yield ""
    yield from _items(
        f"{iso_utc(one.begin_unix_seconds)} {one.severity} {one.code} {one.where}: {one.message}"
        for one in part.findings
        if one.severity != "info"
    )


def _populations(part: RecordingPart) -> Iterator[str]:
    told = part.trial.requests
    if told is None:
        yield f"Requests by population: {NOT_SHOWN} (no request records)"
        return
    counted = f"{told.trials} trials, {told.warm_ups} warm-ups, {told.excluded} left out"
    yield f"{told.requests} requests, {told.failed} failed, {counted}"
    yield ""
    yield "| population | requests | failed | ttft p50 / p95 / p99 s | e2e p50 / p95 / p99 s | accepted |"
    yield "|---|---|---|---|---|---|"
    for one in told.populations.values():
        times = [
            " / ".join(_value(value) for value in msgspec.structs.astuple(found))
            for found in (one.ttft_seconds, one.e2e_seconds)
        ]
        yield f"| {one.name} | {one.requests} | {one.failed} | {times[0]} | {times[1]} | {_value(one.accept_length)} |"


def _items(found: Iterable[str]) -> Iterator[str]:
    empty = True
    for one in found:
        empty = False
        yield f"- {_text(one)}"
    if empty:
        yield "- none"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    printable = "".join(sign if sign.isprintable() else " " for sign in str(value))
    return _MARKUP.sub(r"\\\1", printable)


def _value(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _gb(value: int | None) -> str:
    return "-" if value is None else f"{value / 1e9:.3f} GB"


def _code(value: Any) -> str:
    """Indented by four: no text inside can end the block."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return "\n".join(f"    {line}" for line in text.splitlines())
