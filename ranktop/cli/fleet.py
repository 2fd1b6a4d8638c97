"""`ranktop fleet`: many nodes through a Prometheus server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from ranktop.cli.errors import OK, NothingToLookAt, UsageProblem
from ranktop.cli.record_options import DURATION
from ranktop.cli.settings import load_settings
from ranktop.cli.watch import can_draw
from ranktop.finding import SEVERITIES
from ranktop.printable import printable

if TYPE_CHECKING:
    from collectors.prometheus import Access, Prometheus
    from ranktop.fleet.look import Fleet
    from ranktop.fleet.queries import Scope

_FILE = click.Path(exists=True, dir_okay=False)
TOKEN = "RANKTOP_PROMETHEUS_TOKEN"
PASSWORD = "RANKTOP_PROMETHEUS_PASSWORD"


@click.command()
@click.option("--prometheus", "url", required=True, metavar="URL", help="Prometheus, Thanos, Mimir or VictoriaMetrics.")
@click.option("--selector", default="", metavar="MATCHERS", help='Only these nodes: cluster="a", env!="test".')
@click.option("--group", metavar="LABEL", help="A label of the targets that nodes are grouped by.")
@click.option("--interval", default=10.0, type=click.FloatRange(1, 600), show_default=True, metavar="SECONDS")
@click.option("--span", default="1h", type=DURATION, show_default=True, metavar="TIME", help="Length of the strip.")
@click.option("--timeout", default=5.0, type=click.FloatRange(0.1, 120), show_default=True, metavar="SECONDS")
@click.option("--user", metavar="NAME", help=f"Basic auth; the password comes from {PASSWORD}. A token: {TOKEN}.")
@click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="For tenants, like X-Scope-OrgID:a.")
@click.option("--ca-file", type=_FILE, help="Trust this CA instead of the system's.")
@click.option("--cert-file", type=_FILE, help="Client certificate.")
@click.option("--key-file", type=_FILE, help="Its key, where it is in a file of its own.")
@click.option("--once", is_flag=True, help="Print the nodes once and exit: 1 when something is at breach or worse.")
@click.option("--theme", default=None, metavar="NAME|FILE", help="Colour theme.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Only ASCII signs.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
def fleet(
    url: str,
    selector: str,
    group: str | None,
    interval: float,
    span: float,
    timeout: float,
    user: str | None,
    headers: tuple[str, ...],
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    once: bool,
    theme: str | None,
    ascii_only: bool,
    no_mouse: bool,
) -> int:
    """Watch many nodes through a Prometheus server that scrapes `ranktop exporter`, or SGLang alone."""
    from collectors.prometheus import Access, Prometheus
    from ranktop.fleet.queries import Scope, ScopeError

    try:
        scope = Scope(selector, group)
    except ScopeError as problem:
        raise UsageProblem(f"fleet: {problem}") from problem
    access = Access(
        url=checked_url(url),
        bearer=secret(TOKEN),
        user=user,
        password=secret(PASSWORD),
        headers=dict(_header(text) for text in headers),
        ca_file=ca_file,
        cert_file=cert_file,
        key_file=key_file,
        timeout_seconds=timeout,
    )
    source = Prometheus(access)
    try:
        if once or not can_draw():
            return _print(source, scope)
        return _draw(source, scope, access, interval, span, theme, ascii_only, not no_mouse)
    finally:
        source.close()


def checked_url(url: str) -> str:
    """The address with its scheme. UsageProblem when it is none, or carries a password."""
    full = url if "://" in url else f"http://{url}"
    parts = urlsplit(full)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise UsageProblem("--prometheus: not an address (like http://prometheus:9090)")
    if parts.username or parts.password:
        raise UsageProblem(f"--prometheus: holds a user or a password, which would show in ps (--user and {PASSWORD})")
    return full


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or name.strip().lower() == "authorization":
        raise UsageProblem(f"--header: must be NAME:VALUE, and no Authorization (set {TOKEN} instead)")
    return name.strip(), value.strip()


def secret(name: str) -> str | None:
    """From the environment, or from the file that `<name>_FILE` names; never from a flag, which ps shows."""
    path = os.environ.get(f"{name}_FILE")
    if os.environ.get(name) or not path:
        return os.environ.get(name) or None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageProblem(f"{name}_FILE {path}: cannot be read: {problem}") from problem


def _print(source: Prometheus, scope: Scope) -> int:
    from ranktop.fleet.look import look
    from ranktop.sample import SourceError

    try:
        seen = look(source, scope)
    except SourceError as problem:
        raise NothingToLookAt(f"fleet: {problem}") from problem
    if not seen.rows:
        raise NothingToLookAt("fleet: no series of ranktop or SGLang there (is --selector too narrow?)")
    for text in fleet_text(seen):
        click.echo(text)
    worst = max((SEVERITIES.index(row.severity) for row in seen.rows if row.severity), default=-1)
    return int(worst >= SEVERITIES.index("breach"))


def fleet_text(seen: Fleet) -> list[str]:
    """A line a node, then what only several nodes show."""
    lines: list[str] = []
    for row in seen.rows:
        codes = " ".join(f"{one.code}({one.ranks})" for one in row.findings)
        state = row.severity or "ok" if row.origin == "ranktop" else row.origin
        lines.append(f"{row.instance:<28} {','.join(row.roles) or '-':<9} {state:<9} {codes}".rstrip())
    lines += [f"{one.severity} {one.code}: {one.message}" for one in seen.findings]
    return [printable(text) for text in (*lines, *(f"incomplete: {warning}" for warning in seen.warnings))]


def _draw(
    source: Prometheus,
    scope: Scope,
    access: Access,
    interval: float,
    span: float,
    theme: str | None,
    ascii_only: bool,
    mouse: bool,
) -> int:
    from collectors.prometheus import host_of
    from ranktop.cli.screen_choice import screen_choice
    from tui.fleet_app import FleetApp

    chosen = screen_choice(load_settings(), theme, ascii_only, mouse)
    app = FleetApp(
        source,
        scope,
        f"fleet by {host_of(access.url)}",
        chosen.themes,
        chosen.glyphs,
        interval_seconds=interval,
        span_seconds=span,
        keys=chosen.keys,
    )
    app.run(mouse=chosen.mouse)
    return app.return_code or OK
