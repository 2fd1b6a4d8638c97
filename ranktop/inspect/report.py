"""From paths to a verdict: the same reconciliation as on a live node, on what the files hold."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.inspect.evidence import Evidence, FileNote, gather
from ranktop.inspect.missing import missing
from ranktop.inspect.reading import Reader
from ranktop.inspect.samples import samples_of
from ranktop.inspect.servers import servers_of
from ranktop.plan import LaunchRequest
from ranktop.plan.hostrules import assumed_allowance, host_findings
from ranktop.plan.machine import Machine, MemoryNode
from ranktop.reconcile import Reconciler, Verdict
from ranktop.reconcile.grouping import group
from ranktop.reconcile.headline import headline
from ranktop.sample import Sample

_MARGIN_BYTES = 10 << 30


class Inspection(Struct, frozen=True):
    """The verdict, what every file was taken for, and what is missing to say more."""

    verdict: Verdict
    files: tuple[FileNote, ...]
    missing: tuple[str, ...]
    window_seconds: float | None


def inspect_paths(
    paths: Sequence[str],
    *,
    every_seconds: float | None = None,
    sglang: str | None = None,
    launch: LaunchRequest | None = None,
) -> Inspection:
    """Reads all paths and judges them. Never raises for what a file holds."""
    with tempfile.TemporaryDirectory(prefix="ranktop-inspect-") as scratch:
        evidence = gather(Reader(Path(scratch)).read(paths))
        return judge(evidence, every_seconds=every_seconds, sglang=sglang, launch=launch)


def judge(
    evidence: Evidence,
    *,
    every_seconds: float | None = None,
    sglang: str | None = None,
    launch: LaunchRequest | None = None,
) -> Inspection:
    """The verdict on what was gathered. Trees in it must still be on disk."""
    servers = servers_of(evidence)
    samples = samples_of(evidence, servers, every_seconds)
    # A bundle's samples are a live node's: they are judged as `check` did there.
    reconciler = Reconciler(given=launch, sglang=sglang, since_start=not evidence.samples)
    verdict = reconciler.update(samples[0])
    for sample in samples[1:]:
        verdict = reconciler.update(sample)
    if not evidence.samples:
        asked = {server.id: launch or server.launch or LaunchRequest() for server in servers}
        verdict = _with_headline(_with_plan_findings(verdict, asked))
    windows = [tiers.window_seconds for tiers in (server.tiers for server in verdict.servers) if tiers.window_seconds]
    return Inspection(verdict, tuple(evidence.notes), missing(evidence, verdict), max(windows, default=None))


def _with_plan_findings(verdict: Verdict, asked: Mapping[str, LaunchRequest]) -> Verdict:
    """What is known of a launch before it runs belongs to a look at files too."""
    found: list[Finding] = list(verdict.findings)
    for server in verdict.servers:
        if server.plan is None:
            continue
        planned = list(server.plan.findings)
        if server.plan_origin == "inferred":
            # Pool sizes imply no flags: what the launch lacks is not known.
            planned = [finding for finding in planned if finding.code != "PLAN-METRICS-OFF"]
        has_run = _has_run(verdict, server.id)
        planned += host_findings(
            server.plan,
            _limits_of(verdict) if has_run else _machine(verdict),
            assumed_allowance(server.plan, _MARGIN_BYTES),
            asked.get(server.id, LaunchRequest()),
            preflight=not has_run,
        )
        found += [replace(finding, server=server.id) for finding in planned]
    return replace(verdict, findings=group(found, {}))


def _has_run(verdict: Verdict, server: str) -> bool:
    """Whether a pool of this server was logged or mapped: then what is available is so beside its pools."""
    lines = [line for rank in verdict.ranks if rank.server == server for line in rank.lines]
    return any(line.line.startswith("host.") and line.source in ("logged", "measured") for line in lines)


def _with_headline(verdict: Verdict) -> Verdict:
    """Files are no live node: that nothing answers says nothing of it."""
    sentence, severity = headline(verdict.sample, verdict.servers, verdict.findings, None)
    if severity is None and any(server.plan is not None for server in verdict.servers):
        sentence = "nothing in these files is out of plan, as far as they tell"
    return replace(verdict, headline=sentence, headline_severity=severity)


def _limits_of(verdict: Verdict) -> Machine:
    """What limits ranks that run already: their pools are no part of what is available, so only the memlock limit."""
    processes = verdict.sample.processes
    limits = [rank.memlock_limit_bytes for rank in processes.ranks] if processes is not None else []
    finite = [limit for limit in limits if limit is not None and limit >= 0]
    return Machine(memlock_bytes=min(finite, default=None))


def _machine(verdict: Verdict) -> Machine:
    """The host of the files, as the plan's rules want it."""
    sample = verdict.sample
    if sample.host is None:
        return Machine()
    nodes = sample.numa or ()
    return Machine(
        available_bytes=sample.host.available_bytes,
        total_bytes=sample.host.total_bytes,
        nodes=tuple(
            MemoryNode(node.node, int(headroom))
            for node in nodes
            if (headroom := verdict.node.line(f"numa.{node.node}.headroom").seen) is not None
        )
        if len(nodes) > 1
        else (),
        gpu_nodes=tuple(gpu.numa_node for gpu in sample.gpus.gpus) if sample.gpus is not None else None,
        hugetlb_free_bytes=_hugetlb_free(sample),
    )


def _hugetlb_free(sample: Sample) -> int | None:
    assert sample.host is not None
    free = [pages.free_pages * pages.page_size_bytes for pages in sample.host.hugepages if pages.free_pages is not None]
    return sum(free) if free else None
