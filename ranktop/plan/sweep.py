"""Sizing questions: one flag over several values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ranktop.plan.flags import field_of, typed
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.machine import needed_bytes
from ranktop.plan.plan import Plan, PlanError

MAX_STEPS = 64


class Step(Struct, frozen=True):
    """One value of the swept flag and its plan."""

    value: Any
    plan: Plan
    request: LaunchRequest

    @property
    def needed_bytes(self) -> int | None:
        """What the pools of all this node's ranks take."""
        return needed_bytes(self.plan)


def sweep(request: LaunchRequest, text: str, compute: Callable[[LaunchRequest], Plan]) -> tuple[str, tuple[Step, ...]]:
    """(`--flag`, a plan for every value) of `flag=a,b,c`. Raises PlanError for anything else."""
    name, equals, values = text.partition("=")
    flag = "--" + name.strip().lstrip("-")
    field, _ = field_of(flag)
    words = [word.strip() for word in values.split(",") if word.strip()]
    if not equals or field is None or not words:
        raise PlanError(f"--sweep {text!r}: FLAG=a,b,c with a flag of SGLang is accepted, as hicache-size=32,64,96")
    if len(words) > MAX_STEPS:
        raise PlanError(f"--sweep {flag}: {len(words)} values, at most {MAX_STEPS} are planned")
    steps: list[Step] = []
    for word in words:
        value = typed(field, flag, [word])
        flags = {key: kept for key, kept in request.flags.items() if not _replaced(field, key)}
        changed = replace(request, flags={**flags, field: value})
        steps.append(Step(value, compute(changed), changed))
    return flag, tuple(steps)


def _replaced(field: str, key: str) -> bool:
    """A swept ratio needs the size gone, which would win."""
    return field == "hicache_ratio" and key == "hicache_size"
