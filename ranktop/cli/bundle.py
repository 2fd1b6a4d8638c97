"""`ranktop bundle`: what `inspect` reads, from this node, fit to be sent to somebody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec.structs import replace

from collectors.serverlog_find import LogSource, find_log
from ranktop.cli.check import PATIENCE_SECONDS, has_anything, why_nothing
from ranktop.cli.errors import OK, NothingToLookAt, UsageProblem
from ranktop.cli.look import look
from ranktop.cli.node_options import NodeOptions, make_feed, node_options
from ranktop.inspect.bundle import BundleError, Item, log_item, samples_item, text_item, write_bundle
from ranktop.inspect.redact import Redactor
from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import NoData, Sample, SourceError

_HOST_FILES = ("meminfo", "vmstat", "pressure/memory")


@click.command()
@node_options
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="A new .tar.gz.")
@click.option("--window", default=5.0, type=click.FloatRange(0, 3600), show_default=True, metavar="SECONDS")
def bundle(node: NodeOptions, output: Path, window: float) -> int:
    """Collect this node into FILE for `ranktop inspect`, secrets and addresses removed. Prints what was taken."""
    if output.exists() or output.is_symlink():
        raise UsageProblem(f"bundle: {output}: is there already (give a new name; nothing is overwritten)")
    node = replace(node, scrape_seconds=max(1.0, min(node.scrape_seconds, window or 1.0)))
    feed = make_feed(node)
    keeping = _Keeping()
    feed.start()
    try:
        verdict = look(feed, keeping, window, PATIENCE_SECONDS)
    finally:
        feed.stop()
    if not has_anything(verdict):
        raise NothingToLookAt(why_nothing(verdict, "bundle"))
    redactor = Redactor((socket.gethostname(), socket.getfqdn()))
    try:
        contents = write_bundle(output, list(_items(node, keeping.samples, verdict, redactor)))
    except BundleError as problem:
        raise UsageProblem(f"bundle: {problem}") from None
    click.echo(f"{output}\n{contents}", nl=False)
    return OK


class _Keeping(Reconciler):
    """Keeps the samples that it judges."""

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[Sample] = []

    def update(self, sample: Sample) -> Verdict:
        self.samples.append(sample)
        return super().update(sample)


def _items(node: NodeOptions, samples: list[Sample], verdict: Verdict, redactor: Redactor) -> Iterator[Item]:
    yield samples_item(samples, redactor)
    for server in verdict.servers:
        item = _log(node, server.id, server.pid, redactor)
        if item is not None:
            yield item
    for name in _HOST_FILES:
        item = text_item(f"host/{name}", Path(node.proc_root) / name, f"/proc/{name} of this machine", redactor)
        if item is not None:
            yield item


def _log(node: NodeOptions, server: str, pid: int | None, redactor: Redactor) -> Item | None:
    try:
        if node.log is not None:
            return log_item(server, LogSource("file", Path(node.log)), redactor)
        return log_item(server, find_log(pid, Path(node.proc_root)), redactor) if pid is not None else None
    except (NoData, SourceError):
        # The samples say why this log could not be read.
        return None
