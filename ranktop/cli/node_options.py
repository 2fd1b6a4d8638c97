"""The options that every command which looks at a node shares, and the feed that they describe."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click
from msgspec import Struct

from ranktop.cli.errors import UsageProblem
from ranktop.cli.settings import load_settings
from ranktop.clock import REAL_TIME, NodeClock

if TYPE_CHECKING:
    from collectors.nvml_session import NvmlSession
    from collectors.poller import Poller
    from ranktop.reconcile import Reconciler
    from ranktop.reconcile.launches import Launch
    from ranktop.sample import Collector, ServerProcess

_Command = TypeVar("_Command", bound=Callable[..., Any])


class NodeOptions(Struct, frozen=True):
    """Which servers, which roots, how often."""

    urls: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    launch: str | None = None
    proc_root: str = "/proc"
    sys_root: str = "/sys"
    interval_seconds: float = 1.0
    scrape_seconds: float = 5.0
    log: str | None = None
    log_command: str | None = None
    release_nvml: bool = False
    router_urls: tuple[str, ...] = ()
    clock: NodeClock = REAL_TIME
    """The node's clock: a stand-in node's can run fast."""


def node_options(command: _Command) -> _Command:
    """Adds the shared options; the command receives them as one `node: NodeOptions`."""

    @functools.wraps(command)
    def gather(
        url: tuple[str, ...],
        pid: tuple[int, ...],
        launch: str | None,
        proc_root: str,
        sys_root: str,
        interval: float | None,
        scrape_interval: float | None,
        log: str | None,
        log_command: str | None,
        release_nvml: bool,
        router_url: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        urls = tuple(_checked_url(text) for text in url)
        cadence = load_settings().cadence
        node = NodeOptions(
            urls,
            pid,
            launch,
            proc_root,
            sys_root,
            interval or cadence.interval_seconds,
            scrape_interval or cadence.scrape_seconds,
            log,
            log_command,
            release_nvml,
            tuple(_checked_url(text) for text in router_url),
        )
        return command(node=node, **rest)

    wrapped: Any = gather
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


_FOLDER = click.Path(exists=True, file_okay=False)
_OPTIONS = (
    click.option("--url", multiple=True, metavar="URL", help="Only this server; may be given again."),
    click.option("--pid", multiple=True, type=int, metavar="PID", help="Only the server with this main process."),
    click.option(
        "--launch",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Launch line to plan from, for a server that does not tell its own.",
    ),
    click.option(
        "--log",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="The server's log, where it is not found by itself.",
    ),
    click.option("--log-command", metavar="CMD", help="A command that prints the log, like 'kubectl logs -f POD'."),
    click.option(
        "--router-url", multiple=True, metavar="URL", help="Metrics page of a router, for latency from admission."
    ),
    click.option("--release-nvml", is_flag=True, help="Open NVML for each reading only, so that a GPU can be reset."),
    click.option("--proc-root", default="/proc", type=_FOLDER, show_default=True, help="Where /proc is mounted."),
    click.option("--sys-root", default="/sys", type=_FOLDER, show_default=True, help="Where /sys is mounted."),
    click.option(
        "--interval", default=None, type=click.FloatRange(0.2, 60), metavar="SECONDS", help="Host and GPUs. Default: 1."
    ),
    click.option(
        "--scrape-interval",
        default=None,
        type=click.FloatRange(1, 300),
        metavar="SECONDS",
        help="Least time between two metrics pages, default 5; never closer than 100x the server's response time.",
    ),
)


def make_session(node: NodeOptions) -> NvmlSession:
    """The one NVML session of this process."""
    from collectors.nvml_session import NvmlSession

    return NvmlSession(hold=not node.release_nvml, proc_root=node.proc_root)


def make_feed(node: NodeOptions, session: NvmlSession | None = None, *, head_start_seconds: float = 0.0) -> Poller:
    """A poller over this node's live sources, not started yet. `head_start_seconds` is that of the host's sources."""
    from collectors.poller import Poller
    from collectors.registry import local_groups

    local = local_groups(
        proc_root=node.proc_root,
        sys_root=node.sys_root,
        only_pids=node.pids,
        only_urls=node.urls,
        session=session or make_session(node),
    )
    return Poller(
        local.first,
        lambda server: _server_groups(server, node),
        later=[*local.later, *_router_groups(node)],
        given=[_server_of(url) for url in node.urls],
        head_start_seconds=head_start_seconds,
        least_period_seconds=node.interval_seconds,
        wall=node.clock,
        monotonic=node.clock.monotonic,
        speed=node.clock.speed,
    )


def _router_groups(node: NodeOptions) -> Sequence[Sequence[Collector]]:
    if not node.router_urls:
        return ()
    from collectors.router import RouterCollector

    return [[RouterCollector(url)] for url in node.router_urls]


def _server_groups(server: ServerProcess, node: NodeOptions) -> Sequence[Sequence[Collector]]:
    from collectors.server_registry import server_groups

    return server_groups(
        server,
        scrape_seconds=node.scrape_seconds,
        proc_root=node.proc_root,
        log_path=node.log,
        log_command=node.log_command,
    )


def make_reconciler(node: NodeOptions, launches: Iterable[Launch] = ()) -> Reconciler:
    """A reconciler with the launch that was given, if any; `launches` are those of earlier runs, to compare with."""
    from ranktop.plan import parse_launch
    from ranktop.reconcile import Reconciler

    thresholds = load_settings().thresholds
    if node.launch is None:
        return Reconciler(thresholds, launches=launches)
    try:
        text = Path(node.launch).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageProblem(f"--launch {node.launch}: cannot be read: {problem}") from problem
    return Reconciler(thresholds, parse_launch(text), launches=launches)


def _checked_url(url: str) -> str:
    full = url if "://" in url else f"http://{url}"
    parts = urlsplit(full)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageProblem(f"--url {url}: not an address (like http://127.0.0.1:30000)")
    if parts.username or parts.password:
        raise UsageProblem("--url: holds a user or a password, which would show in ps (set RANKTOP_API_KEY instead)")
    default = 443 if parts.scheme == "https" else 80
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or default}"


def _server_of(url: str) -> ServerProcess:
    from ranktop.sample import ServerProcess

    parts = urlsplit(url)
    return ServerProcess(id=f"{parts.hostname}:{parts.port}", pid=None, start_ticks=0, url=url)
