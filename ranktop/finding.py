"""One rule that fired. Shared by the plan (before a launch) and the reconciliation (while it runs)."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Severity = Literal["info", "warn", "breach", "critical"]
Scope = Literal["node", "server", "rank"]

SEVERITIES: tuple[Severity, ...] = ("info", "warn", "breach", "critical")


class Finding(Struct, frozen=True):
    """A stable code with its evidence. `evidence` holds numbers (units in names), `sources` where each came from."""

    code: str
    severity: Severity
    message: str
    scope: Scope = "node"
    server: str | None = None
    rank: str | None = None
    ranks: tuple[str, ...] = ()
    since: str | None = None
    """ISO 8601, UTC."""
    evidence: dict[str, Any] = {}
    sources: dict[str, str] = {}
    advice: str = ""
    causes: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()


def worst(findings: tuple[Finding, ...] | list[Finding]) -> Severity | None:
    """The highest severity present, None when there are no findings."""
    if not findings:
        return None
    return SEVERITIES[max(SEVERITIES.index(finding.severity) for finding in findings)]


def exit_code(findings: tuple[Finding, ...] | list[Finding]) -> int:
    """0 when nothing is at breach or worse, else 1 (contracts: exit codes)."""
    return int(worst(findings) in ("breach", "critical"))
