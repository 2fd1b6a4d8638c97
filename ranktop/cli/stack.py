"""`ranktop stack`: the Python stack of one rank through py-spy, when an operator asks for it."""

from __future__ import annotations

import shutil
import subprocess

import click

from ranktop.cli.errors import NothingToLookAt, UsageProblem
from ranktop.sample import Processes, RankProcess

TIMEOUT_SECONDS = 20.0
MAX_OUTPUT_BYTES = 1 << 20


@click.command()
@click.argument("rank", required=False, metavar="[RANK]")
@click.option("--pid", type=click.IntRange(1), metavar="PID", help="This process instead of a rank's tag.")
@click.option("--server", metavar="ID", help="The server, where several have such a rank.")
@click.option("--proc-root", default="/proc", metavar="DIRECTORY", show_default=True, help="Where /proc is mounted.")
def stack(rank: str | None, pid: int | None, server: str | None, proc_root: str) -> int:
    """Print the Python stacks of RANK (like TP3, or 'DP0 TP3') through `py-spy dump --nonblocking`.

    It reads the process's memory without stopping it: some tens of milliseconds of one core, no pause of the rank; a
    stack that changes meanwhile may come out torn. Needs py-spy, and root or CAP_SYS_PTRACE.
    """
    if (rank is None) == (pid is None):
        raise UsageProblem("stack: give either a rank (like TP3) or --pid PID")
    program = shutil.which("py-spy")
    if program is None:
        raise NothingToLookAt("stack: py-spy is not installed here (pip install py-spy, or run it beside the server)")
    if pid is None:
        assert rank is not None
        process = chosen(_processes(proc_root), rank, server)
        pid = process.pid
        click.echo(f"{process.tag} of {process.server}, pid {pid}, state {process.state}", err=True)
    click.echo(f"stack: reading pid {pid} without stopping it: tens of milliseconds of one core", err=True)
    click.echo(dump(program, pid), nl=False)
    return 0


def chosen(processes: Processes, rank: str, server: str | None = None) -> RankProcess:
    """The one rank of that tag. NothingToLookAt or UsageProblem that names those there are."""
    wanted = " ".join(rank.upper().split())
    candidates = [one for one in processes.ranks if server in (None, one.server)]
    found = [one for one in candidates if str(one.tag) == wanted] or [
        one for one in candidates if wanted in str(one.tag).split()
    ]
    if not found:
        there = ", ".join(dict.fromkeys(str(one.tag) for one in candidates)) or "none"
        raise NothingToLookAt(f"stack: no rank {rank} runs here (there are: {there})")
    if len(found) > 1:
        names = ", ".join(f"{one.tag} of {one.server} (pid {one.pid})" for one in found[:8])
        raise UsageProblem(f"stack: {rank} is not one rank but {names} (name more of its tag, --server or --pid)")
    return found[0]


def dump(program: str, pid: int) -> str:
    """What py-spy prints. NothingToLookAt with its own words when it fails."""
    try:
        done = subprocess.run(
            [program, "dump", "--nonblocking", "--pid", str(pid)],
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NothingToLookAt(f"stack: {program}: {problem} (is the process in state D?)") from problem
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = said[-1] if said else f"exit status {done.returncode}"
        raise NothingToLookAt(f"stack: py-spy could not read pid {pid}: {reason} (root or CAP_SYS_PTRACE is needed)")
    return done.stdout[:MAX_OUTPUT_BYTES].decode("utf-8", "replace")


def _processes(proc_root: str) -> Processes:
    from collectors.processes import ProcessesCollector
    from ranktop.sample import SourceError

    try:
        return ProcessesCollector(proc_root).read(None, 0.0)
    except SourceError as problem:
        raise NothingToLookAt(f"stack: {problem}") from problem
