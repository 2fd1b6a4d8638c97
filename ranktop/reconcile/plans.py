"""Which plan a server runs by: its own word first, then its command line, then what the user gave."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.plan import LaunchRequest, compute_plan, launch_from_server_info, parse_launch
from ranktop.plan.plan import Plan, PlanError
from ranktop.sample import Gpus, ServerInfo, ServerProcess


class ServerPlan(NamedTuple):
    """A plan and where its launch came from, or why there is none."""

    plan: Plan | None
    origin: str | None
    problem: str | None = None


def plan_server(
    process: ServerProcess | None, info: ServerInfo | None, given: LaunchRequest | None, gpus: Gpus | None
) -> ServerPlan:
    """`/server_info` is resolved and wins; a command line is resolved as SGLang would; then the given launch."""
    device_tokens = info.max_total_num_tokens if info else None
    arch = gpu_arch(gpus)
    problems: list[str] = []
    for origin, request in _requests(process, info, given, problems):
        try:
            plan = compute_plan(request, version=info.version if info else None, arch=arch, device_tokens=device_tokens)
        except PlanError as problem:
            problems.append(f"{origin}: {problem}")
        else:
            return ServerPlan(plan, origin)
    return ServerPlan(None, None, "; ".join(problems) or "no launch seen yet")


def _requests(
    process: ServerProcess | None, info: ServerInfo | None, given: LaunchRequest | None, problems: list[str]
) -> list[tuple[str, LaunchRequest]]:
    found: list[tuple[str, LaunchRequest]] = []
    if info is not None and info.args:
        found.append(("server_info", launch_from_server_info(info.args, info.version)))
    if process is not None and process.argv:
        try:
            found.append(("command line", parse_launch(list(process.argv))))
        except PlanError as problem:
            problems.append(f"command line: {problem}")
    if given is not None:
        found.append(("given", given))
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
