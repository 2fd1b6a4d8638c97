"""The one sentence above the grid: what matters now."""

from __future__ import annotations

from collections.abc import Sequence

from ranktop.clock import time_of_day, time_of_day_from_iso
from ranktop.finding import SEVERITIES, Finding, Severity
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.verdict import ServerVerdict
from ranktop.sample import Sample

_LOUD: tuple[Severity, ...] = ("warn", "breach", "critical")


def headline(
    sample: Sample, servers: Sequence[ServerVerdict], findings: Sequence[Finding], within_plan_since: float | None
) -> tuple[str, Severity | None]:
    """The sentence and the severity that colours it (None: nothing is wrong)."""
    loud = loudest(findings)
    if loud:
        others = len(loud) - 1
        more = f"; {others} more below" if others else ""
        since = f", since {time_of_day_from_iso(loud[0].since)}" if loud[0].since else ""
        return f"{sentence(loud[0], len(servers))}{since}{more}", loud[0].severity
    if sample.processes is None and not servers:
        return _why_no_processes(sample), None
    if not servers:
        return _why_no_server(sample), None
    unplanned = [server for server in servers if server.plan is None]
    if len(unplanned) == len(servers):
        return f"watching without a plan: {unplanned[0].plan_error or 'no launch seen yet'}", None
    loading = [server for server in servers if not server.is_ready]
    if loading and _is_new(sample, loading[0].id):
        return f"asking {loading[0].id}", None
    if loading:
        return f"{loading[0].id} is not ready yet: no answer that says so", None
    if within_plan_since is None:
        return "looking", None
    return f"within plan since {time_of_day(within_plan_since)}", None


def _is_new(sample: Sample, server: str) -> bool:
    """None of its sources was read yet."""
    codes = {state.code for state in sample.sources if state.server == server}
    return codes == {"waiting"}


def loudest(findings: Sequence[Finding]) -> list[Finding]:
    """Those above info, the worst first: the sentence is of that one."""
    loud = [finding for finding in findings if finding.severity in _LOUD]
    return sorted(loud, key=lambda finding: -SEVERITIES.index(finding.severity))


def sentence(finding: Finding, servers: int = 1) -> str:
    """Where, and what."""
    told = where(finding, servers)
    return f"{told}: {finding.message}" if told else finding.message


def where(finding: Finding, servers: int = 1) -> str:
    """Its ranks, and where there are several servers of which: a tag is then no name. Of a whole server or of the node
    it is nothing, but for the server where there are several."""
    server = finding.server.removeprefix("127.0.0.1") if finding.server is not None and servers > 1 else ""
    return f"{server} {rank_span(finding.ranks)}".strip()


def _why_no_server(sample: Sample) -> str:
    asked = sample.processes.only_pids if sample.processes is not None else ()
    if asked:
        return f"no SGLang server with main process {', '.join(map(str, asked))} on this node (leave --pid out for all)"
    return "no SGLang server on this node yet: none of its processes is titled sglang::scheduler"


def _why_no_processes(sample: Sample) -> str:
    state = next((state for state in sample.sources if state.name == "processes"), None)
    if state is None or state.code == "waiting":
        return "looking for SGLang servers on this node"
    return f"the processes of this node cannot be read: {state.detail}"
