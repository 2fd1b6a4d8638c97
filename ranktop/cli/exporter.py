"""`ranktop exporter`: this node's lines and findings as Prometheus metrics."""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ranktop.cli.errors import OK, UsageProblem
from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler, node_options
from ranktop.cli.stopping import Stopped, until_a_signal

if TYPE_CHECKING:
    from ranktop.exporter.page import Pages
    from ranktop.exporter.server import MetricsServer
    from ranktop.recording.recorder import Recorder

_DEFAULT_LISTEN = "127.0.0.1:9472"
_FIRST_LOOK_SECONDS = 3.0


@click.command()
@node_options
@click.option("--listen", default=_DEFAULT_LISTEN, show_default=True, metavar="HOST:PORT", help="Port 0: a free one.")
@click.option(
    "--web-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TLS and basic auth, in the format of Prometheus's exporters.",
)
@click.option(
    "--record",
    "recording",
    type=click.Path(dir_okay=False),
    metavar="FILE.rtop",
    help="Record the same samples, so that this node is read once for both.",
)
def exporter(node: NodeOptions, listen: str, web_config: Path | None, recording: str | None) -> int:
    """Serve this node's metrics until stopped. SIGTERM, SIGHUP and Ctrl-C end it."""
    from ranktop.exporter.page import Pages

    host, port = address(listen)
    pages = Pages()
    server = _server(host, port, pages, web_config)
    stopped = until_a_signal()
    feed, reconciler = make_feed(node), make_reconciler(node)
    feed.start()
    try:
        with _recorder(node, recording) as recorder:

            def step() -> None:
                sample = feed.sample()
                verdict = reconciler.update(sample)
                pages.put(verdict)
                if recorder is not None:
                    recorder.put(sample, verdict)

            feed.wait_first(_FIRST_LOOK_SECONDS)
            step()
            server.start()
            click.echo(f"exporter: {server.url}")
            if web_config is None and not is_loopback(host):
                click.echo(
                    f"ranktop: exporter: {listen} can be read by whoever reaches it (--web-config for TLS and users)",
                    err=True,
                )
            _every(node.interval_seconds, step, stopped)
            server.stop()
    finally:
        feed.stop()
    return OK


def _every(seconds: float, step: Callable[[], None], stopped: Stopped) -> None:
    due = time.monotonic() + seconds
    while not stopped.wait(max(0.0, due - time.monotonic())):
        step()
        # From now when a suspend cost more than a period: nothing is caught up on.
        due = max(due, time.monotonic() - seconds) + seconds


def address(listen: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:9472`, `[::1]:9472`, `:9472` (every address). UsageProblem for anything else."""
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageProblem(f"--listen {listen}: not an address (like {_DEFAULT_LISTEN}, :9472 for every address)")
    return host or "0.0.0.0", int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _server(host: str, port: int, pages: Pages, web_config: Path | None) -> MetricsServer:
    from ranktop.exporter.server import MetricsServer
    from ranktop.exporter.webconfig import Users, WebConfigError, load_web_config, tls_context

    tls: ssl.SSLContext | None = None
    users: Users | None = None
    if web_config is not None:
        try:
            config = load_web_config(web_config)
            tls = tls_context(config, web_config.parent)
            users = Users(config.basic_auth_users) if config.basic_auth_users else None
        except WebConfigError as problem:
            raise UsageProblem(f"--web-config: {problem}") from problem
    try:
        return MetricsServer(host, port, pages, tls=tls, users=users)
    except OSError as problem:
        why = problem.strerror or problem
        raise UsageProblem(f"exporter: cannot listen on {host}:{port}: {why} (another --listen)") from problem


@contextlib.contextmanager
def _recorder(node: NodeOptions, path: str | None) -> Generator[Recorder | None]:
    if path is None:
        yield None
        return
    from ranktop.cli.record import make_recorder

    recorder = make_recorder(node, path)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.stop()
