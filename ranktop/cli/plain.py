"""`watch` without a terminal that can draw: one line a second, and a line for everything that opens or closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from ranktop.cli.stopping import Stopped
from ranktop.clock import time_of_day
from ranktop.finding import Finding
from ranktop.printable import one_line
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.verdict import Verdict
from ranktop.sample import Sample, SampleFeed

if TYPE_CHECKING:
    from tui.tools import Recorder


def watch_plainly(
    feed: SampleFeed,
    judge: Callable[[Sample], Verdict],
    recorder: Recorder | None,
    stopped: Stopped,
) -> None:
    """Until `stopped` is set."""
    open_before: dict[tuple[str, str | None], Finding] = {}
    while not stopped.is_set():
        verdict = judge(feed.sample())
        if recorder is not None:
            recorder.put(verdict.sample, verdict)
        open_now = {(finding.code, finding.server): finding for finding in verdict.findings}
        for text in changes(open_before, open_now):
            click.echo(text)
        open_before = open_now
        click.echo(status(verdict))
        stopped.wait(1.0)


def status(verdict: Verdict) -> str:
    """The moment in one line."""
    node, tiers = verdict.node, verdict.tiers
    words = [time_of_day(verdict.sample.at_unix_seconds), verdict.headline]
    available = node.line("host.available")
    if available.seen is not None:
        simulated = " (simulated)" if available.source == "simulated" else ""
        words.append(f"{available.seen / 1e9:.1f} GB available{simulated}")
    if tiers.device_hit is not None and tiers.host_hit is not None:
        words.append(f"L1 {100 * tiers.device_hit:.0f} % L2 {100 * tiers.host_hit:.0f} %")
    return "  ".join(map(one_line, words))


def changes(before: dict[tuple[str, str | None], Finding], now: dict[tuple[str, str | None], Finding]) -> Iterator[str]:
    """What opened and what closed."""
    for key, finding in now.items():
        if key not in before:
            yield one_line(f"opened {finding.severity} {finding.code} {_where(finding)}: {finding.message}")
    for key, finding in before.items():
        if key not in now:
            yield one_line(f"closed {finding.code} {_where(finding)}")


def _where(finding: Finding) -> str:
    return rank_span(finding.ranks) or finding.server or "node"
