"""Several recordings by pool size: what each further GB bought."""

from __future__ import annotations

from msgspec import Struct

from ranktop.recording.compare.populations import POPULATIONS
from ranktop.recording.compare.trial import Trial


class Step(Struct, frozen=True):
    """One recording of a sweep. `*_per_gb`: against the step before it, per GB (1e9) of host pools on the node."""

    name: str
    pool_gb: float | None
    device_hit: float | None
    host_hit: float | None
    storage_hit: float | None
    load_back_bytes_per_second: float | None
    backup_bytes_per_second: float | None
    tokens_per_second: float | None
    pressure_end_percent: float | None
    ttft_p50_seconds: dict[str, float]
    e2e_p50_seconds: dict[str, float]
    """By population."""
    host_hit_per_gb: float | None = None
    tokens_per_second_per_gb: float | None = None


def sweep(trials: list[Trial]) -> list[Step]:
    """Steps by pool size, those of unknown size last."""
    steps: list[Step] = []
    for trial in sorted(trials, key=lambda trial: (trial.pool_bytes is None, trial.pool_bytes or 0)):
        before = steps[-1] if steps else None
        pool_gb = trial.pool_bytes / 1e9 if trial.pool_bytes is not None else None
        more = pool_gb - before.pool_gb if before and pool_gb is not None and before.pool_gb is not None else None
        steps.append(
            Step(
                trial.name,
                pool_gb,
                trial.device_hit,
                trial.host_hit,
                trial.storage_hit,
                trial.load_back_bytes_per_second,
                trial.backup_bytes_per_second,
                trial.tokens_per_second,
                trial.pressure_end_percent,
                _medians(trial, "ttft_seconds"),
                _medians(trial, "e2e_seconds"),
                _per_gb(before.host_hit if before else None, trial.host_hit, more),
                _per_gb(before.tokens_per_second if before else None, trial.tokens_per_second, more),
            )
        )
    return steps


def _medians(trial: Trial, what: str) -> dict[str, float]:
    found = trial.requests.populations if trial.requests else {}
    medians = {name: getattr(found[name], what).p50 for name in POPULATIONS if name in found}
    return {name: value for name, value in medians.items() if value is not None}


def _per_gb(before: float | None, after: float | None, more_gb: float | None) -> float | None:
    return (after - before) / more_gb if before is not None and after is not None and more_gb else None
