"""`ranktop check`: one look without a screen."""

from __future__ import annotations

import click
from msgspec.structs import replace

from ranktop.cli import wait_ready as waiting
from ranktop.cli.check_markdown import check_markdown
from ranktop.cli.check_options import codes_of, fails, only, with_manifest
from ranktop.cli.check_text import check_text
from ranktop.cli.documents import check_document, encode
from ranktop.cli.errors import BREACH, OK, NothingToLookAt, UsageProblem
from ranktop.cli.launch_history import remember, remembered
from ranktop.cli.look import look
from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler, node_options
from ranktop.cli.record_options import DURATION
from ranktop.finding import SEVERITIES, Severity
from ranktop.reconcile import Verdict

PATIENCE_SECONDS = 6.0
_MAX_WINDOW_SECONDS = 3600.0


@click.command()
@node_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.option("--markdown", "as_markdown", is_flag=True, help="For an incident channel or a ticket.")
@click.option(
    "--window",
    default="5",
    type=DURATION,
    show_default=True,
    metavar="TIME",
    help="Time between the two samples that rates are taken from.",
)
@click.option("--only", "codes", multiple=True, metavar="CODES", help="Only these findings, like HBM-OVER,HOST-*.")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="breach",
    show_default=True,
    help="Exit 1 from this severity on.",
)
@click.option("--wait-ready", type=DURATION, metavar="TIME", help="Wait so long for all servers to be ready first.")
@click.option(
    "--manifest",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="What the servers must be (written by `ranktop plan --manifest`); every difference is a breach.",
)
def check(
    node: NodeOptions,
    as_json: bool,
    as_markdown: bool,
    window: float,
    codes: tuple[str, ...],
    fail_on: Severity,
    wait_ready: float | None,
    manifest: str | None,
) -> int:
    """Look at this node's SGLang servers once. Exit 1 when something is at breach or worse."""
    if as_json and as_markdown:
        raise UsageProblem("check: --json and --markdown are two formats (give one)")
    if window > _MAX_WINDOW_SECONDS:
        raise UsageProblem(f"--window {window:g}: up to {_MAX_WINDOW_SECONDS:g} seconds are accepted")
    wanted = codes_of(codes)
    verdict, not_ready = _look(node, window, wait_ready)
    if not has_anything(verdict):
        raise NothingToLookAt(why_nothing(verdict, "check"))
    if manifest is not None:
        verdict = with_manifest(verdict, manifest, node)
    verdict = only(verdict, wanted)
    if as_json:
        click.echo(encode(check_document(verdict, window)))
    else:
        click.echo(check_markdown(verdict) if as_markdown else check_text(verdict))
    if not_ready:
        click.echo(f"ranktop: check: {not_ready}", err=True)
    return BREACH if not_ready or fails(verdict.findings, fail_on) else OK


def _look(node: NodeOptions, window: float, ready_seconds: float | None) -> tuple[Verdict, str | None]:
    """The verdict, and why the servers did not get ready, if that was waited for."""
    # Both pages of the window are wanted, and no more.
    node = replace(node, scrape_seconds=max(1.0, min(node.scrape_seconds, window or 1.0)))
    feed, reconciler = make_feed(node), make_reconciler(node, remembered())
    not_ready = None
    feed.start()
    try:
        if ready_seconds is not None:
            not_ready = waiting.wait_ready(feed, reconciler, ready_seconds, _tell)
        verdict = look(feed, reconciler, window, PATIENCE_SECONDS)
    finally:
        feed.stop()
    remember(reconciler.launches)
    return verdict, not_ready


def _tell(line: str) -> None:
    click.echo(f"check: {line}", err=True)


def has_anything(verdict: Verdict) -> bool:
    """A rank's process, or any answer of a server."""
    sample = verdict.sample
    return bool(any(rank.pid for rank in verdict.ranks) or sample.metrics or sample.infos or sample.loads)


def why_nothing(verdict: Verdict, command: str) -> str:
    """One line: what was tried and what came back."""
    failing = {
        state.name: state.detail for state in verdict.sample.sources if state.server is not None and state.detail
    }
    if failing:
        return f"{command}: nothing to look at: {failing.get('metrics') or next(iter(failing.values()))}"
    processes = verdict.sample.processes
    if processes is not None and processes.only_pids:
        return f"{command}: {verdict.headline}"
    return f"{command}: {verdict.headline} (start one, or name it with --url or --pid)"
