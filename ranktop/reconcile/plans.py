"""Which plan a server runs by: its own word, its log, its command line, what the user gave, what log sizes imply."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.plan import LaunchRequest, compute_plan, launch_from_fields, launch_from_server_info, parse_launch
from ranktop.plan.models import guess_model, model_from_config
from ranktop.plan.plan import ModelFacts, Plan, PlanError
from ranktop.reconcile.calibration import Calibration, fit, infer
from ranktop.reconcile.logged import LoggedServer
from ranktop.sample import Gpus, ModelConfig, ServerInfo, ServerProcess


class ServerPlan(NamedTuple):
    """A plan and where its launch came from, or why there is none."""

    plan: Plan | None
    origin: str | None
    problem: str | None = None
    calibration: Calibration | None = None


def plan_server(
    process: ServerProcess | None,
    info: ServerInfo | None,
    given: LaunchRequest | None,
    gpus: Gpus | None,
    logged: LoggedServer | None = None,
    sglang: str | None = None,
    config: ModelConfig | None = None,
) -> ServerPlan:
    """The first of these launches that a plan can be computed for. `sglang` is a version that the user names.

    `/server_info` and a log's `server_args` are resolved; a command line is resolved as SGLang would. A running server
    whose model is neither built in nor readable as `config` has no plan: another model's geometry would cry wolf.
    """
    version = info.version if info and info.version else sglang
    device_tokens = info.max_total_num_tokens if info else None
    if device_tokens is None and logged is not None:
        device_tokens = logged.capacity_tokens
    arch = gpu_arch(gpus)
    problems: list[str] = []
    for origin, request in _requests(process, info, given, logged, version, problems):
        try:
            model = _model_of(request, config)
            plan = compute_plan(request, version=version, model=model, arch=arch, device_tokens=device_tokens)
        except PlanError as problem:
            problems.append(f"{origin}: {problem}")
            continue
        if plan.is_model_assumed and process is not None and process.pid is not None:
            path = request.flags.get("model_path")
            problems.append(f"{origin}: {path} is not built in, and its config.json was not readable")
            continue
        if logged is None:
            return ServerPlan(plan, origin)
        known = bool(version or request.sglang_version)
        fitted = fit(plan, request, logged, is_version_known=known, arch=arch)
        return ServerPlan(fitted.plan, origin, calibration=fitted.calibration)
    return ServerPlan(None, None, "; ".join(problems) or "no launch seen yet")


def _model_of(request: LaunchRequest, config: ModelConfig | None) -> ModelFacts | None:
    """None leaves a built-in model to be found by name."""
    path = request.flags.get("model_path")
    if config is None or guess_model(path) is not None:
        return None
    return model_from_config(config.fields, name=path)


def _requests(
    process: ServerProcess | None,
    info: ServerInfo | None,
    given: LaunchRequest | None,
    logged: LoggedServer | None,
    version: str | None,
    problems: list[str],
) -> list[tuple[str, LaunchRequest]]:
    found: list[tuple[str, LaunchRequest]] = []
    if info is not None and info.args:
        found.append(("server_info", launch_from_server_info(info.args, info.version)))
    if logged is not None and logged.args:
        found.append(("log", launch_from_fields(logged.args, "log", version)))
    if process is not None and process.argv:
        try:
            found.append(("command line", parse_launch(list(process.argv))))
        except PlanError as problem:
            problems.append(f"command line: {problem}")
    if given is None and logged is not None and logged.launch:
        given = parse_launch(logged.launch)
    if given is not None:
        found.append(("given", given))
    if not found and logged is not None:
        implied = infer(logged, version)
        if implied is not None:
            found.append(("inferred", implied))
    return found


_ARCHES = (
    ("sm100", ("B200", "B300", "GB200", "GB300")),
    ("sm120", ("RTX PRO", "RTX 50")),
    ("sm90", ("H20", "H100", "H200", "H800", "GH200")),
)


def gpu_arch(gpus: Gpus | None) -> str | None:
    """The architecture by the product name of the first GPU; None where there is none or it is not known."""
    name = gpus.gpus[0].name if gpus and gpus.gpus else None
    if not name:
        return None
    return next((arch for arch, names in _ARCHES if any(known in name for known in names)), None)
