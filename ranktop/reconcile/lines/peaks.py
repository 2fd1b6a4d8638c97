"""The highest HBM readings of a rank's process and of its whole GPU, kept by phase, and what its GPU held when steady.

The LayerSplit audit asks for four numbers that must not be mixed: bytes of the cache pool (`hbm.kv`), memory of the
rank's process (`hbm.process`), peaks of process and whole GPU (`hbm.peak_process`, `hbm.peak_gpu`) with the phase they
fell in, and admitted tokens (`l1.tokens`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ranktop.plan.plan import GIB
from ranktop.reconcile.compare import compare, reading
from ranktop.reconcile.lines.hbm import GpuMemory, HbmLines, ToldMemory, hbm_lines
from ranktop.reconcile.lines.logged import logged_free_line
from ranktop.reconcile.phases import PHASES
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import Line, PhasePeak, Source

_SETTLED = PHASES.index("steady")


class RankHbm(Struct, frozen=True):
    """What is remembered of one rank's HBM. `pid` tells a new process from the one before."""

    pid: int | None
    peaks: Mapping[str, PhasePeak] = {}
    process_bytes: int | None = None
    """The highest reading until the server was steady: later ones are held against it."""
    rest_bytes: int | None = None
    """The same for what is neither weights, KV pool nor graphs."""
    is_settled: bool = False
    """The server was steady when it was last read, so both stay as they are."""


class RankMemory(NamedTuple):
    """A rank's memory lines, `hbm.rest` held against its own baseline, its peaks, and what is remembered of it."""

    lines: HbmLines
    peak_lines: tuple[Line, ...]
    peaks: tuple[PhasePeak, ...]
    remembered: RankHbm


def rank_memory(
    gpu: GpuMemory,
    source: Source,
    told: ToldMemory,
    logged_free_bytes: int | None,
    known: RankHbm | None,
    pid: int | None,
    phase: str,
    thresholds: Thresholds,
) -> RankMemory:
    """What NVML sees beside what is told, in the `phase` that the process `pid` has reached, after what was `known`."""
    lines = hbm_lines(gpu, source, told)
    if logged_free_bytes is not None and gpu.free_bytes is None:
        lines = lines._replace(free=logged_free_line(logged_free_bytes))
    hbm = _follow(known, pid, lines, phase)
    held = _rest(lines.rest, hbm, thresholds)
    if held is not lines.rest:
        lines = lines._replace(rest=held)
    return RankMemory(lines, *_peaks(tuple(hbm.peaks.values()), lines.total.source), hbm)


def _follow(known: RankHbm | None, pid: int | None, memory: HbmLines, phase: str) -> RankHbm:
    """What this update's readings add to what is known of the process `pid`, in the phase that it has reached."""
    if known is None or known.pid != pid:
        known = RankHbm(pid)
    process, rest = _seen(memory.process), _seen(memory.rest)
    total, free = _seen(memory.total), _seen(memory.free)
    used = total - free if total is not None and free is not None else None
    if process is None and used is None:
        return known
    peak = known.peaks.get(phase) or PhasePeak(phase)
    peaks = known.peaks
    if _is_higher(process, peak.process_bytes) or _is_higher(used, peak.gpu_bytes):
        higher = PhasePeak(phase, _higher(peak.process_bytes, process), _higher(peak.gpu_bytes, used))
        peaks = {**peaks, phase: higher}
    if known.is_settled:
        # SGLang's part of the numbers can come later than NVML's.
        first_rest = known.rest_bytes if known.rest_bytes is not None else rest
        if peaks is known.peaks and first_rest == known.rest_bytes:
            return known
        return replace(known, peaks=peaks, rest_bytes=first_rest)
    return RankHbm(
        pid,
        peaks,
        _higher(known.process_bytes, process),
        _higher(known.rest_bytes, rest),
        PHASES.index(phase) >= _SETTLED and process is not None,
    )


def _rest(line: Line, hbm: RankHbm, thresholds: Thresholds) -> Line:
    if not hbm.is_settled or hbm.rest_bytes is None:
        return line
    return compare(
        line.line,
        hbm.rest_bytes,
        line.seen,
        tolerance=thresholds.hbm_tolerance_bytes,
        source=line.source,
        detail=line.detail or "planned is this rank's own highest value until steady",
        stale=line.stale,
    )


@functools.lru_cache(maxsize=1024)
def _peaks(known: tuple[PhasePeak, ...], source: str | None) -> tuple[tuple[Line, ...], tuple[PhasePeak, ...]]:
    """Lines, and the peaks by phase. A new peak is rare, and its text is the dear part."""
    peaks = tuple(sorted(known, key=lambda peak: PHASES.index(peak.phase)))
    lines = (
        _peak("hbm.peak_process", [(peak.phase, peak.process_bytes) for peak in peaks], source),
        _peak("hbm.peak_gpu", [(peak.phase, peak.gpu_bytes) for peak in peaks], source),
    )
    return lines, peaks


def _peak(name: str, by_phase: Sequence[tuple[str, int | None]], source: str | None) -> Line:
    known = [(phase, size) for phase, size in by_phase if size is not None]
    if not known:
        return reading(name, None, source=None, missing="NVML told none of it since ranktop watches")
    line = reading(
        name, max(size for _, size in known), source="simulated" if source == "simulated" else "measured", missing=""
    )
    told = ", ".join(f"{phase} {size / GIB:.2f}" for phase, size in known)
    return replace(line, detail=f"since ranktop watches, in GiB: {told}")


def _higher(before: int | None, now: int | None) -> int | None:
    return now if before is None or (now is not None and now > before) else before


def _is_higher(now: int | None, before: int | None) -> bool:
    return now is not None and (before is None or now > before)


def _seen(line: Line) -> int | None:
    return None if line.seen is None else int(line.seen)
