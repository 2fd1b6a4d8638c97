"""`ranktop check`: one look without a screen."""

from __future__ import annotations

import click
from msgspec.structs import replace

from ranktop.cli.check_text import check_text
from ranktop.cli.documents import check_document, encode
from ranktop.cli.errors import NothingToLookAt
from ranktop.cli.look import look
from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler, node_options
from ranktop.finding import exit_code
from ranktop.reconcile import Verdict

PATIENCE_SECONDS = 6.0


@click.command()
@node_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.option(
    "--window",
    default=5.0,
    type=click.FloatRange(0, 3600),
    show_default=True,
    metavar="SECONDS",
    help="Time between the two samples that rates are taken from.",
)
def check(node: NodeOptions, as_json: bool, window: float) -> int:
    """Look at this node's SGLang servers once. Exit 1 when something is at breach or worse."""
    # Both pages of the window are wanted, and no more.
    node = replace(node, scrape_seconds=max(1.0, min(node.scrape_seconds, window or 1.0)))
    feed = make_feed(node)
    feed.start()
    try:
        verdict = look(feed, make_reconciler(node), window, PATIENCE_SECONDS)
    finally:
        feed.stop()
    if not has_anything(verdict):
        raise NothingToLookAt(why_nothing(verdict))
    click.echo(encode(check_document(verdict, window)) if as_json else check_text(verdict))
    return exit_code(verdict.findings)


def has_anything(verdict: Verdict) -> bool:
    """A rank's process, or any answer of a server."""
    sample = verdict.sample
    return bool(any(rank.pid for rank in verdict.ranks) or sample.metrics or sample.infos or sample.loads)


def why_nothing(verdict: Verdict) -> str:
    """One line: what was tried and what came back."""
    failing = {
        state.name: state.detail for state in verdict.sample.sources if state.server is not None and state.detail
    }
    if failing:
        return f"check: nothing to look at: {failing.get('metrics') or next(iter(failing.values()))}"
    return f"check: {verdict.headline} (start one, or name it with --url or --pid)"
