"""`plan --sweep`: one row a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ranktop.finding import Finding
from ranktop.plan import GB, GIB
from ranktop.plan.gate import answer
from ranktop.plan.machine import Machine
from ranktop.plan.sweep import Step

Row = tuple[Step, tuple[Finding, ...]]

_LINE = "{value:>14} {tokens:>13} {rank:>11} {node:>11} {gate:>11}  {verdict}"


def sweep_text(flag: str, rows: Sequence[Row], machine: Machine) -> str:
    """A table of 80 columns and its units."""
    lines = [
        _LINE.format(
            value=flag.lstrip("-"), tokens="tokens", rank="GB a rank", node="GB a node", gate="gate GB", verdict="fits"
        ).rstrip()
    ]
    for step, findings in rows:
        node, host = step.plan.node, step.plan.ranks[0].host if step.plan.ranks else None
        lines.append(
            _LINE.format(
                value=str(step.value),
                tokens="-" if host is None or host.tokens is None else f"{host.tokens:,}",
                rank=_gb(host.allocated_bytes if host is not None else None),
                node=_gb(step.needed_bytes),
                gate=_gb(node.surely_fits_bytes),
                verdict=_verdict(step, findings, machine),
            ).rstrip()
        )
    lines.append("")
    lines.append("gate GB: free memory from which SGLang's own check surely passes.")
    if machine.available_bytes is not None:
        lines.append(f"fits: pools + other + margin against {machine.available_bytes / GIB:.1f} GiB free.")
    return "\n".join(lines)


def sweep_document(flag: str, rows: Sequence[Row], machine: Machine) -> dict[str, Any]:
    """The same as data."""
    return {
        "schema": 1,
        "flag": flag,
        "memory_bytes": machine.available_bytes,
        "steps": [
            {
                "value": step.value,
                "tokens": host.tokens if (host := step.plan.ranks[0].host) is not None else None,
                "rank_allocated_bytes": host.allocated_bytes if host is not None else None,
                "node_needed_bytes": step.needed_bytes,
                "surely_fits_bytes": step.plan.node.surely_fits_bytes,
                "surely_fails_below_bytes": step.plan.node.surely_fails_below_bytes,
                "findings": [finding.code for finding in findings],
                "rejected": [row.message for row in step.plan.eligibility if row.verdict == "rejected"],
            }
            for step, findings in rows
        ],
    }


def _verdict(step: Step, findings: tuple[Finding, ...], machine: Machine) -> str:
    if any(row.verdict == "rejected" for row in step.plan.eligibility):
        return "rejected"
    if machine.available_bytes is None:
        return ""
    codes = {finding.code for finding in findings}
    if "PLAN-HOST-OVERCOMMIT" in codes:
        return "no: host"
    if "PLAN-NODE-OVERCOMMIT" in codes:
        return "no: NUMA node"
    if "PLAN-HOST-GATE" in codes:
        return f"gate {answer(step.plan.node, machine.available_bytes)}".replace(" surely", "").split(" on ")[0]
    return "yes"


def _gb(size: int | None) -> str:
    return "-" if size is None else f"{size / GB:,.2f}"
