"""`ranktop preflight`: the plan of a launch held against this host, before launching."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ranktop.cli.launch_options import LaunchOptions, gib_bytes, launch_options
from ranktop.cli.plan import DEFAULT_MARGIN_GIB, allowance_of, show
from ranktop.plan import LaunchRequest, Plan
from ranktop.plan.hostrules import Allowance, host_findings

if TYPE_CHECKING:
    from ranktop.cli.machine import HostReading

_FOLDER = click.Path(exists=True, file_okay=False)


@click.command(context_settings={"ignore_unknown_options": True, "max_content_width": 100})
@launch_options
@click.option("--other", type=float, metavar="GiB", help="What else must fit; else measured on a running server.")
@click.option("--margin", type=float, default=DEFAULT_MARGIN_GIB, show_default=True, metavar="GiB", help="Left free.")
@click.option("--replacing", type=int, metavar="PID", help="The server that goes first: its memory is credited.")
@click.option("--proc-root", default="/proc", type=_FOLDER, show_default=True, help="Where /proc is mounted.")
@click.option("--sys-root", default="/sys", type=_FOLDER, show_default=True, help="Where /sys is mounted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def preflight(
    options: LaunchOptions,
    other: float | None,
    margin: float,
    replacing: int | None,
    proc_root: str,
    sys_root: str,
    as_json: bool,
) -> int:
    """Whether LAUNCH fits this host: memory, cgroup, NUMA nodes, huge pages, limits. Exit 1 when it does not.

    \b
    ranktop preflight -- python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 120
    ranktop preflight --replacing 4200 -- ...    (the server with this main process goes first)
    """
    from ranktop.cli.machine import read_host

    request = options.request
    visible = request.environment.get("CUDA_VISIBLE_DEVICES") or os.environ.get("CUDA_VISIBLE_DEVICES")
    reading = read_host(proc_root, sys_root, replacing=replacing, visible_devices=visible)

    def compute(changed: LaunchRequest) -> Plan:
        return options.compute(changed, reading.machine.limit_bytes)

    planned = compute(request)
    allowance = _allowance(planned, reading, other, margin)
    findings = host_findings(planned, reading.machine, allowance, request, preflight=True)
    return show(request, planned, findings, reading.machine, allowance, compute, as_json=as_json, unread=reading.unread)


def _allowance(planned: Plan, reading: HostReading, other_gib: float | None, margin_gib: float) -> Allowance:
    """As given, else the private memory that running ranks have here, else the usual."""
    if other_gib is not None or reading.other_bytes_per_rank is None:
        return allowance_of(planned, other_gib, margin_gib)
    margin = gib_bytes("--margin", margin_gib) or 0
    return Allowance(reading.other_bytes_per_rank * len(planned.ranks), margin, "measured on running ranks")
