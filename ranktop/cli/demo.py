"""`ranktop demo`: a stand-in node, watched."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

import click

from ranktop.cli.errors import OK, UsageProblem
from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler
from ranktop.cli.stopping import Stopped
from ranktop.demo.launch import VERSIONS
from ranktop.demo.launcher import DemoError, DemoNode
from ranktop.demo.rollout import Rollout
from ranktop.demo.scenarios import SCENARIOS, WIDTHS, find_scenario, why_no_scenario
from ranktop.finding import SEVERITIES, Finding, exit_code
from ranktop.printable import one_line
from ranktop.reconcile.grouping import rank_span


@click.command()
@click.argument("scenario", default="healthy")
@click.option("--list", "list_scenarios", is_flag=True, help="Name the scenarios and what each must show.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=None, metavar="N", help="Port of the server. Default: a free one."
)
@click.option(
    "--headless", type=click.FloatRange(0), default=None, metavar="SECONDS", help="No screen; counted from ready."
)
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 1000),
    default=1.0,
    metavar="N",
    show_default=True,
    help="Scales the traffic and the node's clock, so that what takes an hour shows in a minute.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=7, metavar="N", show_default=True, help="Another one, other traffic."
)
@click.option("--theme", default=None, metavar="NAME|FILE", help="Colour theme.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII signs.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
def demo(
    scenario: str,
    list_scenarios: bool,
    port: int | None,
    headless: float | None,
    speed: float,
    seed: int,
    theme: str | None,
    ascii_only: bool,
    no_mouse: bool,
) -> int:
    """Start a stand-in SGLang node (real processes and pools, simulated GPUs) and watch it."""
    if list_scenarios:
        click.echo(_listed())
        return OK
    if find_scenario(scenario) is None:
        raise UsageProblem(f"demo: {why_no_scenario(scenario)}")
    stopped = _end_on_signals()
    try:
        with DemoNode(scenario, port=port, seed=seed, speed=speed) as node:
            if headless is not None:
                return _headless(node, headless, seed, stopped)
            from ranktop.cli.watch import Look, show

            node.wait_ready()
            with Rollout(node, seed):
                return show(_options(node), Look(theme, ascii_only, not no_mouse))
    except DemoError as problem:
        raise UsageProblem(f"demo: {problem}") from problem


def _listed() -> str:
    lines = [
        f"{known.name:<18} {known.title}: {', '.join(known.findings) or 'no finding'}" for known in SCENARIOS.values()
    ]
    widths = ", ".join(map(str, WIDTHS))
    return "\n".join(
        [
            *lines,
            f"NAME@VERSION plays it as another SGLang: {', '.join(VERSIONS)} (the first by itself)",
            f"NAME:RANKS plays it on a larger host: {widths} ranks, 60 MB of memory each (not where ranks are split)",
        ]
    )


def _options(node: DemoNode) -> NodeOptions:
    # Pages that are five seconds apart would be minutes apart for a node whose clock runs fast.
    scrape_seconds = min(5.0, max(2.0, 5.0 / node.clock.speed))
    if node.scenario.relaunch is not None:
        return NodeOptions(urls=(node.url,), scrape_seconds=scrape_seconds, clock=node.clock)
    pids = tuple(pid for pid in (node.pid, node.orphan_pid) if pid is not None)
    return NodeOptions(pids=pids, scrape_seconds=scrape_seconds, clock=node.clock)


def _headless(node: DemoNode, seconds: float, seed: int, stopped: Stopped) -> int:
    """Judge the node once a second; print what opens or worsens; exit by the worst that opened."""
    print(f"demo: url={node.url} pid={node.pid} log={node.log_path}", flush=True)
    node.wait_ready()
    print("demo: ready", flush=True)
    with Rollout(node, seed):
        return _judged(_options(node), seconds, stopped)


def _judged(options: NodeOptions, seconds: float, stopped: Stopped) -> int:
    feed, reconciler = make_feed(options), make_reconciler(options)
    parent = os.getppid()
    worst: dict[tuple[str, str | None, tuple[str, ...]], Finding] = {}
    feed.start()
    try:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and os.getppid() == parent:
            for finding in reconciler.update(feed.sample()).findings:
                key = (finding.code, finding.server, finding.ranks)
                if key not in worst or _is_worse(finding, worst[key]):
                    worst[key] = finding
                    where = rank_span(finding.ranks) or finding.server or "node"
                    print(one_line(f"demo: {finding.severity} {finding.code} {where}: {finding.message}"), flush=True)
            if stopped.wait(max(0.0, min(1.0, ends - time.monotonic()))):
                raise KeyboardInterrupt
    finally:
        feed.stop()
    return exit_code(list(worst.values()))


def _is_worse(finding: Finding, before: Finding) -> bool:
    return SEVERITIES.index(finding.severity) > SEVERITIES.index(before.severity)


def _end_on_signals() -> Stopped:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that the node and its files go too.

    What is raised in a callback of the interpreter's is lost (`until_a_signal`): a loop asks what this gives as well.
    """
    stopped = Stopped()

    def end(_number: int, _frame: FrameType | None) -> None:
        stopped.set()
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    return stopped
