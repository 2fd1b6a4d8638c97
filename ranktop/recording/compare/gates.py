"""Gates between a baseline and a candidate: pass, fail, or not shown. What is not shown never passes.

Source: the HiCache audit, "Measure the whole request" and "Define a promotion packet"; the LayerSplit audit, "Measure
correctness, memory, and service impact". They give no universal limits: the defaults are ours, a file replaces them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import product
from typing import Literal

import msgspec
from msgspec import Struct

from ranktop.recording.compare.populations import POPULATIONS, Population
from ranktop.recording.compare.trial import Trial

Outcome = Literal["pass", "fail", "not shown"]

POOL_CODES = ("HOST-POOL-OVER", "HOST-POOL-UNDER", "HOST-POOL-MISSING", "HBM-OVER", "PLAN-HOST-OVERCOMMIT")
LOSS_CODES = (
    "HOST-OOM-KILL",
    "RANK-DEAD",
    "SERVER-HUNG",
    "GPU-LOST",
    "GPU-XID",
    "GPU-ECC",
    "PD-FAILURES",
    "PD-STUCK",
    "L3-RANK-SKEW",
    "TIER-INCONSISTENT",
    "SPEC-COLLAPSE",
)


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """`*_ratio`: candidate / baseline at most (or at least, for throughput and acceptance)."""

    pressure_rise_percent: float = 1.0
    """End of the candidate over the end of the baseline, PSI some avg10 in points."""
    available_drop_gb: float = 2.0
    """MemAvailable from the candidate's beginning to its end, beyond the baseline's own drop."""
    ttft_p50_ratio: float = 1.05
    ttft_p95_ratio: float = 1.10
    ttft_p99_ratio: float = 1.10
    e2e_p50_ratio: float = 1.05
    e2e_p95_ratio: float = 1.10
    e2e_p99_ratio: float = 1.10
    tokens_per_second_ratio: float = 0.97
    accept_length_ratio: float = 0.95
    failed_share_rise: float = 0.0
    missing_samples_share: float = 0.01
    """Of a recording: with more holes than that its numbers prove nothing."""
    least_requests: int = 20
    """Of a population on each side, below which its latencies are not shown."""


class Gate(Struct, frozen=True):
    """One question and its answer. `limit` is in the unit of the values."""

    gate: str
    outcome: Outcome
    base: float | None
    candidate: float | None
    limit: float | None
    unit: str
    detail: str = ""


class Comparison(Struct, frozen=True):
    """All gates of one candidate. `outcome`: fail when one fails, pass only when the whole request is shown to pass."""

    base: str
    candidate: str
    outcome: Outcome
    reason: str
    gates: list[Gate]
    notes: list[str]


def limits_of(text: str) -> Limits:
    """Limits from TOML: the table `[gates]`. ValueError when it is none."""
    try:
        return msgspec.convert(tomllib.loads(text).get("gates", {}), Limits)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise ValueError(str(problem)) from problem


def compare(base: Trial, candidate: Trial, limits: Limits) -> Comparison:
    """All gates, in the order in which they matter."""
    gates = [*_soundness(base, candidate, limits), *_capacity(base, candidate, limits)]
    gates += [*_latencies(base, candidate, limits), *_rates(base, candidate, limits)]
    outcome, reason = _verdict(gates)
    return Comparison(base.name, candidate.name, outcome, reason, gates, list(_notes(base, candidate)))


def _soundness(base: Trial, candidate: Trial, limits: Limits) -> Iterator[Gate]:
    shares = [trial.missing_samples / max(trial.samples + trial.missing_samples, 1) for trial in (base, candidate)]
    most = limits.missing_samples_share
    outcome = "pass" if max(shares) <= most else "fail"
    yield Gate("recording whole", outcome, shares[0], shares[1], most, "ratio", "missing samples")
    lost = candidate.worst(LOSS_CODES)
    yield _count_gate("nothing lost", base.worst(LOSS_CODES) is not None, lost is not None, lost.code if lost else "")
    failed = [_failed_share(trial) for trial in (base, candidate)]
    yield _most("failed requests", failed[0], failed[1], limits.failed_share_rise, "ratio", is_rise=True)


def _capacity(base: Trial, candidate: Trial, limits: Limits) -> Iterator[Gate]:
    over = candidate.worst(POOL_CODES)
    if candidate.launch is None:
        yield Gate("pools within plan", "not shown", None, None, 0, "count", "no plan: the launch is not known")
    else:
        yield _count_gate(
            "pools within plan", base.worst(POOL_CODES) is not None, over is not None, over.code if over else ""
        )
    ends = base.pressure_end_percent, candidate.pressure_end_percent
    yield _most("host pressure back at baseline", *ends, limits.pressure_rise_percent, "percent", is_rise=True)
    drops = [
        None
        if trial.available_begin_bytes is None or trial.available_end_bytes is None
        else (trial.available_begin_bytes - trial.available_end_bytes) / 1e9
        for trial in (base, candidate)
    ]
    yield _most("available memory kept", drops[0], drops[1], limits.available_drop_gb, "GB", is_rise=True)


def _latencies(base: Trial, candidate: Trial, limits: Limits) -> Iterator[Gate]:
    if base.requests is None or candidate.requests is None:
        detail = "no request records (--export-metrics-to-file)"
        yield Gate("latency by population", "not shown", None, None, None, "seconds", detail)
        return
    for name in POPULATIONS:
        sides = [base.requests.populations.get(name), candidate.requests.populations.get(name)]
        if sides == [None, None]:
            continue
        for what, quantile in product(("ttft", "e2e"), ("p50", "p95", "p99")):
            yield _latency(
                name, what, quantile, sides, getattr(limits, f"{what}_{quantile}_ratio"), limits.least_requests
            )


def _latency(name: str, what: str, quantile: str, sides: list[Population | None], ratio: float, least: int) -> Gate:
    gate = f"{what} {quantile} {name}"
    values = [None if side is None else getattr(getattr(side, f"{what}_seconds"), quantile) for side in sides]
    few = [side.requests if side else 0 for side in sides]
    if min(few) < least:
        detail = f"{few[0]} and {few[1]} requests, {least} are needed"
        return Gate(gate, "not shown", values[0], values[1], None, "seconds", detail)
    if values[0] is None or values[1] is None:
        return Gate(gate, "not shown", values[0], values[1], None, "seconds", "too few requests for this tail")
    limit = values[0] * ratio
    return Gate(gate, "pass" if values[1] <= limit else "fail", values[0], values[1], limit, "seconds")


def _rates(base: Trial, candidate: Trial, limits: Limits) -> Iterator[Gate]:
    for gate, values, ratio, unit in (
        (
            "decode throughput",
            (base.tokens_per_second, candidate.tokens_per_second),
            limits.tokens_per_second_ratio,
            "tokens/s",
        ),
        ("acceptance length", (base.accept_length, candidate.accept_length), limits.accept_length_ratio, "tokens"),
    ):
        if values[0] is None and values[1] is None and gate == "acceptance length":
            continue
        if values[0] is None or values[1] is None:
            yield Gate(gate, "not shown", *values, None, unit, "one recording does not show it")
        else:
            limit = values[0] * ratio
            yield Gate(gate, "pass" if values[1] >= limit else "fail", *values, limit, unit)


def _verdict(gates: list[Gate]) -> tuple[Outcome, str]:
    failed = [gate.gate for gate in gates if gate.outcome == "fail"]
    if failed:
        return "fail", f"{', '.join(failed)}"
    passed = {gate.gate for gate in gates if gate.outcome == "pass"}
    if not any({f"e2e p50 {name}", f"e2e p95 {name}"} <= passed for name in POPULATIONS):
        return "not shown", "no full latency with its tail of any population: time to first token alone never passes"
    hidden = [gate.gate for gate in gates if gate.outcome == "not shown" and not gate.gate.endswith(POPULATIONS)]
    if hidden:
        return "not shown", f"not shown: {', '.join(hidden)}"
    return "pass", "every gate that the recordings show is passed"


def _notes(base: Trial, candidate: Trial) -> Iterator[str]:
    for trial in (base, candidate):
        told = trial.requests
        if told is None:
            yield f"{trial.name}: no request records (--export-metrics-to-file): populations cannot be told apart"
            continue
        yield (
            f"{trial.name}: {told.requests} requests, {told.failed} failed and kept in the denominator, "
            f"{told.trials} trials, {told.warm_ups} warm-ups marked, {told.excluded} requests of warm-ups left out, "
            f"{told.other} of no known population"
        )
    if base.launch is not None and candidate.launch is not None:
        before, after = msgspec.to_builtins(base.launch), msgspec.to_builtins(candidate.launch)
        changed = [f"{name}: {before[name]} -> {after[name]}" for name in before if before[name] != after.get(name)]
        yield "launch differs in " + "; ".join(changed) if changed else "the same launch on both sides"
    yield "a miss is among `cold`: request records do not tell a first sight from a miss"


def _failed_share(trial: Trial) -> float | None:
    if trial.requests is None or not trial.requests.requests:
        return None
    return trial.requests.failed / trial.requests.requests


def _count_gate(gate: str, base: bool, candidate: bool, detail: str) -> Gate:
    return Gate(gate, "fail" if candidate else "pass", float(base), float(candidate), 0, "count", detail)


def _most(gate: str, base: float | None, candidate: float | None, allowed: float, unit: str, *, is_rise: bool) -> Gate:
    if base is None or candidate is None:
        return Gate(gate, "not shown", base, candidate, None, unit, "one recording does not show it")
    limit = base + allowed if is_rise else allowed
    return Gate(gate, "pass" if candidate <= limit else "fail", base, candidate, limit, unit)
