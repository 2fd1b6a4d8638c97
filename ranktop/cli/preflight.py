"""`ranktop preflight`: the plan of a launch held against this host, before launching."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ranktop.cli.plan import DEFAULT_MARGIN_GIB, allowance_of, gib_bytes, launch_of, model_of, show
from ranktop.plan import LaunchRequest, Plan, compute_plan
from ranktop.plan.hostrules import Allowance, host_findings

if TYPE_CHECKING:
    from ranktop.cli.machine import HostReading

_FOLDER = click.Path(exists=True, file_okay=False)


@click.command(context_settings={"ignore_unknown_options": True, "max_content_width": 100})
@click.option("--sglang", metavar="VERSION", help="SGLang version; 0.5.18 when neither this nor the launch says.")
@click.option("--model", metavar="NAME", help="A built-in model: glm-5.2, deepseek-v3.2, deepseek-v3, qwen3-32b, ...")
@click.option("--model-config", type=click.Path(dir_okay=False), metavar="FILE", help="The model's config.json.")
@click.option("--arch", metavar="ARCH", help="sm90 (default), sm100 or sm120.")
@click.option("--device-tokens", type=int, metavar="N", help="Tokens of the L1 pool, from the log or /server_info.")
@click.option("--hbm-budget", type=float, metavar="GiB", help="HBM for the L1 pool: computes its tokens.")
@click.option("--other", type=float, metavar="GiB", help="What else must fit; else measured on a running server.")
@click.option("--margin", type=float, default=DEFAULT_MARGIN_GIB, show_default=True, metavar="GiB", help="Left free.")
@click.option("--replacing", type=int, metavar="PID", help="The server that goes first: its memory is credited.")
@click.option("--proc-root", default="/proc", type=_FOLDER, show_default=True, help="Where /proc is mounted.")
@click.option("--sys-root", default="/sys", type=_FOLDER, show_default=True, help="Where /sys is mounted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.argument("launch", nargs=-1, type=click.UNPROCESSED)
def preflight(
    sglang: str | None,
    model: str | None,
    model_config: str | None,
    arch: str | None,
    device_tokens: int | None,
    hbm_budget: float | None,
    other: float | None,
    margin: float,
    replacing: int | None,
    proc_root: str,
    sys_root: str,
    as_json: bool,
    launch: tuple[str, ...],
) -> int:
    """Whether LAUNCH fits this host: memory, cgroup, NUMA nodes, huge pages, limits. Exit 1 when it does not.

    \b
    ranktop preflight -- python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 120
    ranktop preflight --replacing 4200 -- ...    (the server with this main process goes first)
    """
    from ranktop.cli.machine import read_host

    request = launch_of(launch, "preflight")
    facts = model_of(model, model_config)
    visible = request.environment.get("CUDA_VISIBLE_DEVICES") or os.environ.get("CUDA_VISIBLE_DEVICES")
    reading = read_host(proc_root, sys_root, replacing=replacing, visible_devices=visible)

    def compute(changed: LaunchRequest) -> Plan:
        return compute_plan(
            changed,
            version=sglang,
            model=facts,
            arch=arch,
            device_tokens=device_tokens,
            hbm_budget_bytes=gib_bytes("--hbm-budget", hbm_budget),
            host_available_bytes=reading.machine.limit_bytes,
        )

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
