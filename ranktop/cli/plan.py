"""`ranktop plan`: what a launch will take. Never reads this host, but for a manifest that is asked of a process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from ranktop.cli.errors import UsageProblem
from ranktop.finding import Finding, exit_code
from ranktop.plan import (
    GIB,
    LaunchRequest,
    ModelFacts,
    Plan,
    compute_plan,
    guess_model,
    launch_from_fields,
    launch_from_server_info,
    model_from_config,
    model_named,
    parse_launch,
)
from ranktop.plan.hostrules import Allowance, assumed_allowance, host_findings
from ranktop.plan.machine import Machine, asked_machine
from ranktop.plan.models import MAX_CONFIG_BYTES
from ranktop.plan.words import MAX_TEXT_CHARS

DEFAULT_MARGIN_GIB = 10.0

Compute = Callable[[LaunchRequest], Plan]


@click.command(context_settings={"ignore_unknown_options": True, "max_content_width": 100})
@click.option("--sglang", metavar="VERSION", help="SGLang version; 0.5.18 when neither this nor the launch says.")
@click.option("--model", metavar="NAME", help="A built-in model: glm-5.2, deepseek-v3.2, deepseek-v3, qwen3-32b, ...")
@click.option("--model-config", type=click.Path(dir_okay=False), metavar="FILE", help="The model's config.json.")
@click.option("--arch", metavar="ARCH", help="sm90 (default), sm100 or sm120.")
@click.option("--device-tokens", type=int, metavar="N", help="Tokens of the L1 pool, from the log or /server_info.")
@click.option("--hbm-budget", type=float, metavar="GiB", help="HBM for the L1 pool: computes its tokens.")
@click.option("--memory", type=float, metavar="GiB", help="Hold the plan against a machine with this much free memory.")
@click.option("--nodes", type=int, metavar="N", help="Its NUMA nodes; the memory and the GPUs are split evenly.")
@click.option("--other", type=float, metavar="GiB", help="What else must fit; else 6.6 GiB a rank is assumed.")
@click.option("--margin", type=float, default=DEFAULT_MARGIN_GIB, show_default=True, metavar="GiB", help="Left free.")
@click.option("--sweep", "sweep_text", metavar="FLAG=a,b,c", help="A table over several values of one flag.")
@click.option("--controls", "show_controls", is_flag=True, help="The negative controls for this launch, to paste.")
@click.option("--manifest", type=click.Path(dir_okay=False), metavar="FILE", help="Write a canary manifest (YAML).")
@click.option("--pid", type=int, metavar="PID", help="With --manifest: the running server that fills it in.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.argument("launch", nargs=-1, type=click.UNPROCESSED)
def plan(
    sglang: str | None,
    model: str | None,
    model_config: str | None,
    arch: str | None,
    device_tokens: int | None,
    hbm_budget: float | None,
    memory: float | None,
    nodes: int | None,
    other: float | None,
    margin: float,
    sweep_text: str | None,
    show_controls: bool,
    manifest: str | None,
    pid: int | None,
    as_json: bool,
    launch: tuple[str, ...],
) -> int:
    """What LAUNCH takes per rank and per node. LAUNCH is a whole launch line or bare flags, `-` reads it from stdin.

    \b
    ranktop plan -- python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 120
    ranktop plan --memory 1511 --nodes 2 -- --tp 8 --enable-hierarchical-cache --hicache-size 120
    """
    request = launch_of(launch, "plan")
    facts = model_of(model, model_config)
    available = gib_bytes("--memory", memory)

    def compute(changed: LaunchRequest) -> Plan:
        return compute_plan(
            changed,
            version=sglang,
            model=facts,
            arch=arch,
            device_tokens=device_tokens,
            hbm_budget_bytes=gib_bytes("--hbm-budget", hbm_budget),
            host_available_bytes=available,
        )

    planned = compute(request)
    if nodes is not None and (memory is None or nodes < 1):
        raise UsageProblem("plan: --nodes: a positive number together with --memory is accepted")
    machine = asked_machine(memory, nodes, max(len(planned.ranks), 1))
    allowance = allowance_of(planned, other, margin)
    if manifest is not None:
        return _write_manifest(manifest, request, planned, pid)
    if sweep_text is not None:
        return _sweep(request, sweep_text, compute, machine, other, margin, as_json)
    if show_controls:
        return _controls(request, planned, compute, as_json)
    findings = host_findings(planned, machine, allowance, request)
    return show(request, planned, findings, machine, allowance, compute, as_json=as_json)


def launch_of(words: tuple[str, ...], command: str) -> LaunchRequest:
    """The launch on the command line, or on standard input for a single `-`."""
    if not words:
        raise UsageProblem(
            f"{command}: no launch given (ranktop {command} -- python -m sglang.launch_server --tp 8 ...)"
        )
    text = sys.stdin.read(MAX_TEXT_CHARS + 1) if words == ("-",) else words[0] if len(words) == 1 else ""
    if "server_args=" in text:
        from collectors.serverlog_args import parse_server_args

        return launch_from_fields(parse_server_args(text.partition("server_args=")[2]), "log")
    if text.lstrip().startswith("{"):
        return _from_report(text, command)
    return parse_launch(text or words)


def _from_report(text: str, command: str) -> LaunchRequest:
    """The launch in a pasted `/server_info` answer."""
    import msgspec

    try:
        report = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageProblem(f"{command}: the launch starts as JSON and is none: {error} (paste all of it)") from None
    return launch_from_server_info(report)


def model_of(name: str | None, config: str | None) -> ModelFacts | None:
    """The model that was named, or read from a config.json; None leaves it to the launch."""
    if config is None:
        return (guess_model(name) or model_named(name)) if name else None
    try:
        with open(config, "rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise UsageProblem(f"plan: --model-config {config}: {error.strerror} (give the model's config.json)") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise UsageProblem(
            f"plan: --model-config {config}: more than {MAX_CONFIG_BYTES} bytes (give the model's config.json)"
        )
    return model_from_config(data, name)


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
        click.echo(f"{control.launch}\n")
    return 0


def _write_manifest(path: str, request: LaunchRequest, planned: Plan, pid: int | None) -> int:
    from ranktop.plan.manifest import manifest_of, manifest_yaml

    seen: dict[str, str] | None = None
    if pid is not None:
        from ranktop.cli.manifest import runtime_of

        seen = runtime_of(pid)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(manifest_yaml(manifest_of(request, planned, seen)))
    except OSError as error:
        raise UsageProblem(f"plan: --manifest {path}: {error.strerror} (give a file that can be written)") from None
    click.echo(f"wrote {path}; fill in what says `to fill`")
    return exit_code(planned.findings)


def gib_bytes(option: str, gib: float | None) -> int | None:
    """Bytes of an option in GiB. Raises UsageProblem for what no memory can be."""
    if gib is None:
        return None
    if not 0 <= gib < 1 << 40:
        raise UsageProblem(f"plan: {option} {gib}: a number of GiB, zero or more, is accepted")
    return int(gib * GIB)


def _json(document: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
