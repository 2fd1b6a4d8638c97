"""`ranktop compare`: gates between recordings, and a sweep over several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ranktop.cli.documents import encode
from ranktop.cli.errors import BREACH, OK, NothingToLookAt, UsageProblem
from ranktop.cli.record_options import opened, said_damage

if TYPE_CHECKING:
    from ranktop.recording.compare.gates import Comparison, Limits
    from ranktop.recording.compare.sweep import Step
    from ranktop.recording.compare.trial import Trial

_RTOP = click.Path(dir_okay=False)


@click.command()
@click.argument("base", metavar="BASE.rtop", type=_RTOP)
@click.argument("candidates", metavar="CANDIDATE.rtop...", type=_RTOP, nargs=-1, required=True)
@click.option("--gates", metavar="FILE.toml", type=_RTOP, help="Limits of the gates: a table [gates].")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def compare(base: str, candidates: tuple[str, ...], gates: str | None, as_json: bool) -> int:
    """Hold candidates against a baseline. Exit 1 when a gate fails; what a recording does not show never passes."""
    import msgspec

    from ranktop.recording.compare.gates import compare as held_against
    from ranktop.recording.compare.sweep import sweep

    limits = _limits(gates)
    baseline, *others = (_trial(path) for path in (base, *candidates))
    results = [held_against(baseline, other, limits) for other in others]
    steps = sweep([baseline, *others]) if len(others) > 1 else []
    if as_json:
        document = {
            "schema": 1,
            "comparisons": results,
            "sweep": steps,
            "limits": limits,
            "trials": [baseline, *others],
        }
        click.echo(encode(msgspec.to_builtins(document)))
    else:
        click.echo("\n\n".join([*map(_text, results), *([_sweep_text(steps)] if steps else [])]))
    return BREACH if any(result.outcome == "fail" for result in results) else OK


def _limits(path: str | None) -> Limits:
    from ranktop.recording.compare.gates import Limits, limits_of

    if path is None:
        return Limits()
    try:
        return limits_of(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageProblem(f"compare: --gates {path}: {problem}") from problem


def _trial(path: str) -> Trial:
    from ranktop.recording.compare.trial import trial_of
    from ranktop.recording.errors import RecordingError
    from ranktop.recording.facts import reconciler_of

    with opened(path) as recording:
        try:
            trial = trial_of(recording, reconciler_of(recording.meta))
        except RecordingError as problem:
            raise NothingToLookAt(f"compare: {problem}") from problem
        said_damage(recording)
    return trial


def _text(result: Comparison) -> str:
    rows = [("gate", "base", "candidate", "limit", "unit", "outcome")]
    rows += [
        (gate.gate, _number(gate.base), _number(gate.candidate), _number(gate.limit), gate.unit, gate.outcome)
        for gate in result.gates
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [f"{result.candidate} against {result.base}: {result.outcome} ({result.reason})", ""]
    for row, gate in zip(rows, (None, *result.gates), strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"  {cells}  {gate.detail if gate else ''}".rstrip())
    return "\n".join([*lines, "", *(f"  {note}" for note in result.notes)])


def _sweep_text(steps: list[Step]) -> str:
    lines = ["sweep by host pools of the node, in GB (1e9 bytes); gains are against the row above", ""]
    for step in steps:
        latencies = "  ".join(f"e2e p50 {name} {value:.3f} s" for name, value in step.e2e_p50_seconds.items())
        lines.append(
            f"  {_number(step.pool_gb)} GB  {step.name}: L2 hits {_number(step.host_hit)}, "
            f"{_number(step.tokens_per_second)} tokens/s, pressure {_number(step.pressure_end_percent)} %"
            f"; each further GB: L2 hits {_number(step.host_hit_per_gb)}, "
            f"{_number(step.tokens_per_second_per_gb)} tokens/s  {latencies}".rstrip()
        )
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
