"""`ranktop plan`: what a launch will take. Never reads this host, but for a manifest that is asked of a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ranktop.cli.errors import UsageProblem
from ranktop.cli.launch_options import LaunchOptions, gib_bytes, launch_options
from ranktop.finding import Finding, exit_code
from ranktop.plan import LaunchRequest, Plan
from ranktop.plan.hostrules import Allowance, assumed_allowance, host_findings
from ranktop.plan.machine import Machine, asked_machine

DEFAULT_MARGIN_GIB = 10.0

Compute = Callable[[LaunchRequest], Plan]


@click.command(context_settings={"ignore_unknown_options": True, "max_content_width": 100})
@launch_options
@click.option("--memory", type=float, metavar="GiB", help="Hold the plan against a machine with this much free memory.")
@click.option("--nodes", type=int, metavar="N", help="Its NUMA nodes; the memory and the GPUs are split evenly.")
@click.option("--other", type=float, metavar="GiB", help="What else must fit; else 6.6 GiB a rank is assumed.")
@click.option("--margin", type=float, default=DEFAULT_MARGIN_GIB, show_default=True, metavar="GiB", help="Left free.")
@click.option("--sweep", "sweep_text", metavar="FLAG=a,b,c", help="A table over several values of one flag.")
@click.option("--controls", "show_controls", is_flag=True, help="The negative controls for this launch, to paste.")
@click.option("--manifest", type=click.Path(dir_okay=False), metavar="FILE", help="Write a canary manifest (YAML).")
@click.option("--pid", type=int, metavar="PID", help="With --manifest: the running server that fills it in.")
@click.option("--overwrite", is_flag=True, help="With --manifest: replace a file that is there already.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def plan(
    options: LaunchOptions,
    memory: float | None,
    nodes: int | None,
    other: float | None,
    margin: float,
    sweep_text: str | None,
    show_controls: bool,
    manifest: str | None,
    overwrite: bool,
    pid: int | None,
    as_json: bool,
) -> int:
    """What LAUNCH takes per rank and per node. LAUNCH is a whole launch line or bare flags, `-` reads it from stdin.

    \b
    ranktop plan -- python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 120
    ranktop plan --memory 1511 --nodes 2 -- --tp 8 --enable-hierarchical-cache --hicache-size 120
    """
    request = options.request
    available = gib_bytes("--memory", memory)

    def compute(changed: LaunchRequest) -> Plan:
        return options.compute(changed, available)

    planned = compute(request)
    if nodes is not None and (memory is None or not 1 <= nodes <= 1024):
        raise UsageProblem(f"plan: --nodes {nodes}: 1 to 1024 is accepted, together with --memory")
    machine = asked_machine(memory, nodes, max(len(planned.ranks), 1))
    allowance = allowance_of(planned, other, margin)
    if manifest is not None:
        return _write_manifest(manifest, request, planned, pid, overwrite)
    if sweep_text is not None:
        return _sweep(request, sweep_text, compute, machine, other, margin, as_json)
    if show_controls:
        return _controls(request, planned, compute, as_json)
    findings = host_findings(planned, machine, allowance, request)
    return show(request, planned, findings, machine, allowance, compute, as_json=as_json)


def allowance_of(planned: Plan, other_gib: float | None, margin_gib: float) -> Allowance:
    """What must fit beside the pools: as given, else the usual memory of the ranks."""
    margin = gib_bytes("--margin", margin_gib) or 0
    other = gib_bytes("--other", other_gib)
    return assumed_allowance(planned, margin) if other is None else Allowance(other, margin, "given")


def show(
    request: LaunchRequest,
    planned: Plan,
    found: tuple[Finding, ...],
    machine: Machine,
    allowance: Allowance,
    compute: Compute,
    *,
    as_json: bool,
    unread: tuple[str, ...] = (),
) -> int:
    """Prints the plan with its findings and what would fit; returns the exit code."""
    from ranktop.plan.fit import fit_now

    findings = (*found, *planned.findings)
    fit = fit_now(planned, machine, allowance, request, compute)
    if as_json:
        import msgspec

        document: dict[str, Any] = msgspec.to_builtins(planned)
        document["findings"] = msgspec.to_builtins(findings)
        document["fit"] = msgspec.to_builtins(fit)
        if machine.available_bytes is not None:
            document["machine"] = msgspec.to_builtins(machine)
            document["unread"] = list(unread)
        click.echo(_json(document))
    else:
        from ranktop.cli.plan_text import plan_text

        click.echo(plan_text(planned, findings, fit, machine, allowance, unread))
    return exit_code(findings)


def _sweep(
    request: LaunchRequest,
    text: str,
    compute: Compute,
    machine: Machine,
    other_gib: float | None,
    margin_gib: float,
    as_json: bool,
) -> int:
    from ranktop.cli.sweep_text import sweep_document, sweep_text
    from ranktop.plan.sweep import sweep

    flag, steps = sweep(request, text, compute)
    rows = [
        (step, host_findings(step.plan, machine, allowance_of(step.plan, other_gib, margin_gib), step.request))
        for step in steps
    ]
    click.echo(_json(sweep_document(flag, rows, machine)) if as_json else sweep_text(flag, rows, machine))
    return 0


def _controls(request: LaunchRequest, planned: Plan, compute: Compute, as_json: bool) -> int:
    from ranktop.plan.controls import controls

    found = controls(request, planned, compute)
    if as_json:
        import msgspec

        click.echo(_json({"schema": 1, "controls": msgspec.to_builtins(found)}))
    elif not found:
        click.echo("No controls: the launch asks for neither HiCache nor LayerSplit.")
    for control in () if as_json else found:
        click.echo(f"# {control.change}\n#   expected at {planned.sglang.version}: {control.expected}")
        click.echo(f"{control.launch}\n" if control.launch else "")
    return 0


def _write_manifest(path: str, request: LaunchRequest, planned: Plan, pid: int | None, overwrite: bool) -> int:
    from ranktop.cli.output import new_text
    from ranktop.plan.manifest import manifest_of, manifest_yaml

    seen: dict[str, str] | None = None
    if pid is not None:
        from ranktop.cli.manifest import runtime_of

        seen = runtime_of(pid)
    with new_text("plan: --manifest", path, overwrite) as file:
        file.write(manifest_yaml(manifest_of(request, planned, seen)))
    click.echo(f"wrote {path}; fill in what says `to fill`")
    return exit_code(planned.findings)


def _json(document: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
