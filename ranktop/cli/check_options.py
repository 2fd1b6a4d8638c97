"""What `check` is asked to look for: which codes count, from which severity on, against which manifest."""

from __future__ import annotations

from fnmatch import fnmatchcase

from msgspec.structs import replace

from ranktop.cli.errors import UsageProblem
from ranktop.cli.explain import known_code
from ranktop.cli.node_options import NodeOptions
from ranktop.finding import SEVERITIES, Finding, Severity
from ranktop.plan import LaunchRequest, PlanError, launch_from_server_info, parse_launch
from ranktop.reconcile.catalogue import entries
from ranktop.reconcile.verdict import ServerVerdict, Verdict


def codes_of(words: tuple[str, ...]) -> frozenset[str] | None:
    """The codes of `--only`, commas and `HOST-*` allowed; None when nothing is left out."""
    found: set[str] = set()
    for word in (part.strip() for text in words for part in text.split(",")):
        if "*" in word:
            matching = {code for code in entries() if fnmatchcase(code, word.upper())}
            if not matching:
                raise UsageProblem(f"--only {word}: no code matches (`ranktop explain` lists them)")
            found |= matching
        elif word:
            found.add(known_code(word, "check: --only"))
    return frozenset(found) if found else None


def only(verdict: Verdict, codes: frozenset[str] | None) -> Verdict:
    """The verdict with findings of these codes alone."""
    if codes is None:
        return verdict
    return replace(verdict, findings=tuple(finding for finding in verdict.findings if finding.code in codes))


def fails(findings: tuple[Finding, ...], severity: Severity) -> bool:
    """Whether any finding is at this severity or worse."""
    return any(SEVERITIES.index(finding.severity) >= SEVERITIES.index(severity) for finding in findings)


def with_manifest(verdict: Verdict, path: str, node: NodeOptions) -> Verdict:
    """The verdict with a LAUNCH-DRIFT for everything in which a server differs from the manifest."""
    from ranktop.cli.manifest import manifest_drift

    found: list[Finding] = []
    for server in verdict.servers:
        request = _request(server, verdict)
        if request is None or server.plan is None:
            found.append(_unknown(server))
            continue
        found += manifest_drift(
            path,
            request,
            server.plan,
            pid=server.pid,
            server=server.id,
            proc_root=node.proc_root,
            sys_root=node.sys_root,
        )
    worst_first = sorted((*verdict.findings, *found), key=lambda one: -SEVERITIES.index(one.severity))
    return replace(verdict, findings=tuple(worst_first))


def _request(server: ServerVerdict, verdict: Verdict) -> LaunchRequest | None:
    """The server's own word, else its command line."""
    info = verdict.sample.infos.get(server.id)
    if info is not None and info.args:
        return launch_from_server_info(info.args, info.version)
    processes = verdict.sample.processes.servers if verdict.sample.processes else ()
    argv = next((list(one.argv) for one in processes if one.id == server.id), [])
    try:
        return parse_launch(argv) if argv else None
    except PlanError:
        return None


def _unknown(server: ServerVerdict) -> Finding:
    return Finding(
        "LAUNCH-DRIFT",
        "breach",
        "its launch is not known, so nothing of the manifest could be compared",
        scope="server",
        server=server.id,
        evidence={"plan_error": server.plan_error},
        sources={"plan_error": "computed"},
        advice="let it answer /server_info, or name its launch with --launch FILE",
    )
