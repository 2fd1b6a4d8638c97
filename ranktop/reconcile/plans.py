"""Which plan a server runs by: its own word, its log's, its command line's, what the user gave, what log sizes imply."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.plan import LaunchRequest, compute_plan, launch_from_fields, launch_from_server_info, parse_launch
from ranktop.plan.plan import Plan, PlanError
from ranktop.reconcile.calibration import Calibration, fit, infer
from ranktop.reconcile.logged import LoggedServer
from ranktop.sample import Gpus, ServerInfo, ServerProcess


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
) -> ServerPlan:
    """The first of these launches that a plan can be computed for. `sglang` is a version that the user names.

    `/server_info` and a log's `server_args` are resolved; a command line is resolved as SGLang would.
    """
    version = info.version if info and info.version else sglang
    device_tokens = info.max_total_num_tokens if info else None
    if device_tokens is None and logged is not None:
        device_tokens = logged.capacity_tokens
    arch = gpu_arch(gpus)
    problems: list[str] = []
    for origin, request in _requests(process, info, given, logged, version, problems):
        try:
            plan = compute_plan(request, version=version, arch=arch, device_tokens=device_tokens)
        except PlanError as problem:
            problems.append(f"{origin}: {problem}")
            continue
        if logged is None:
            return ServerPlan(plan, origin)
        known = bool(version or request.sglang_version)
        fitted = fit(plan, request, logged, is_version_known=known, arch=arch)
        return ServerPlan(fitted.plan, origin, calibration=fitted.calibration)
    return ServerPlan(None, None, "; ".join(problems) or "no launch seen yet")


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
