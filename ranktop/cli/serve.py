"""`ranktop serve`: the same screen in a browser (extra `[web]`)."""

from __future__ import annotations

import os
import shlex
import sys

import click

from ranktop.cli.errors import OK, UsageProblem

_LOCAL = ("127.0.0.1", "localhost", "::1")


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", show_default=True, help="Address to listen on.")
@click.option("--port", default=9473, type=click.IntRange(1, 65535), metavar="N", show_default=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(host: str, port: int, arguments: tuple[str, ...]) -> int:
    """Serve `ranktop watch ARGUMENTS` to browsers. There is no login: every visitor sees what you see."""
    try:
        from textual_serve.server import Server
    except ImportError as missing:
        raise UsageProblem("serve: needs the extra [web] (pip install 'ranktop[web]')") from missing
    if host not in _LOCAL:
        click.echo(f"ranktop: serve: {host}:{port} has no login: whoever reaches it sees this node", err=True)
    command = shlex.join([sys.executable, "-m", "ranktop.cli", "watch", *arguments])
    try:
        Server(command, host=host, port=port, title="ranktop").serve()
    except OSError as problem:
        # asyncio says it in a sentence of its own, with the number in front of it.
        why = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else problem.strerror or str(problem)
        raise UsageProblem(f"serve: cannot listen on {host}:{port}: {why} (another --host or --port)") from problem
    return OK
