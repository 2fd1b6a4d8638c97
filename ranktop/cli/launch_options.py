"""The options that `plan` and `preflight` share: a launch, and what it is to be computed for."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec import Struct

from ranktop.cli.errors import UsageProblem
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
from ranktop.plan.models import MAX_CONFIG_BYTES
from ranktop.plan.plan import PlanError
from ranktop.plan.words import MAX_TEXT_CHARS

_Command = TypeVar("_Command", bound=Callable[..., Any])


class LaunchOptions(Struct, frozen=True):
    """The launch as read, and the facts that decide its plan."""

    request: LaunchRequest
    version: str | None
    model: ModelFacts | None
    arch: str | None
    device_tokens: int | None
    hbm_budget_bytes: int | None

    def compute(self, request: LaunchRequest, host_available_bytes: int | None = None) -> Plan:
        """The plan of `request` (this launch or a changed one) under the same options."""
        return compute_plan(
            request,
            version=self.version,
            model=self.model,
            arch=self.arch,
            device_tokens=self.device_tokens,
            hbm_budget_bytes=self.hbm_budget_bytes,
            host_available_bytes=host_available_bytes,
        )


def launch_options(command: _Command) -> _Command:
    """Adds the shared options and LAUNCH; the command receives them as one `options: LaunchOptions`."""

    @functools.wraps(command)
    def gather(
        launch: tuple[str, ...],
        sglang: str | None,
        model: str | None,
        model_config: str | None,
        arch: str | None,
        device_tokens: int | None,
        hbm_budget: float | None,
        **rest: Any,
    ) -> Any:
        options = LaunchOptions(
            _launch(launch, command.__name__),
            sglang,
            _model(model, model_config),
            arch,
            device_tokens,
            gib_bytes("--hbm-budget", hbm_budget),
        )
        return command(options=options, **rest)

    wrapped: Any = gather
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


_OPTIONS = (
    click.option("--sglang", metavar="VERSION", help="SGLang version; 0.5.18 when neither this nor the launch says."),
    click.option(
        "--model", metavar="NAME", help="A built-in model: glm-5.2 (default), deepseek-v3.2, deepseek-v3, ..."
    ),
    click.option("--model-config", type=click.Path(dir_okay=False), metavar="FILE", help="The model's config.json."),
    click.option("--arch", metavar="ARCH", help="sm90 (default), sm100 or sm120."),
    click.option("--device-tokens", type=int, metavar="N", help="Tokens of the L1 pool, from the log or /server_info."),
    click.option("--hbm-budget", type=float, metavar="GiB", help="HBM for the L1 pool: computes its tokens."),
    click.argument("launch", nargs=-1, type=click.UNPROCESSED),
)


def gib_bytes(option: str, gib: float | None) -> int | None:
    """Bytes of an option in GiB. Raises UsageProblem for what no memory can be."""
    if gib is None:
        return None
    if not 0 <= gib < 1 << 40:
        raise UsageProblem(f"{option} {gib}: a number of GiB, zero or more, is accepted")
    return int(gib * GIB)


def _launch(words: tuple[str, ...], command: str) -> LaunchRequest:
    """The launch on the command line, or on standard input for a single `-`: flags, a report, or a log line."""
    if not words:
        raise UsageProblem(
            f"{command}: no launch given (ranktop {command} -- python -m sglang.launch_server --tp 8 ...)"
        )
    text = words[0] if len(words) == 1 else ""
    if text == "-":
        text = sys.stdin.buffer.read(MAX_TEXT_CHARS + 1).decode("utf-8", "replace")
    if "server_args=" in text:
        from collectors.serverlog_args import parse_server_args

        return launch_from_fields(parse_server_args(text.partition("server_args=")[2]), "log")
    if text.lstrip().startswith("{"):
        return _from_report(text, command)
    request = parse_launch(text or words)
    typed = text or " ".join(words)
    if not (request.flags or request.unknown_flags or "sglang" in typed):
        raise UsageProblem(
            f"{command}: no launch of SGLang in {typed[:80]!r} (like python -m sglang.launch_server --tp 8 ...)"
        )
    return request


def _from_report(text: str, command: str) -> LaunchRequest:
    """The launch in a pasted `/server_info` answer."""
    import msgspec

    try:
        report = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageProblem(f"{command}: the launch starts as JSON and is none: {error} (paste all of it)") from None
    return launch_from_server_info(report)


def _model(name: str | None, config: str | None) -> ModelFacts | None:
    """The model that was named, or read from a config.json; None leaves it to the launch."""
    if config is None:
        return (guess_model(name) or model_named(name)) if name else None
    try:
        with open(config, "rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise UsageProblem(f"--model-config {config}: {error.strerror} (give the model's config.json)") from None
    try:
        return model_from_config(data, name)
    except PlanError as problem:
        raise UsageProblem(f"--model-config {config}: {problem}") from None
