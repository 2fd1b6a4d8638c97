"""The audits' test lists with the sign that ranktop shows for each. A mark that begins with an id tells when.

Sources: the HiCache audit ("Start with an L2-only control", "Add L3 only after L2 passes", "Test eviction, corruption,
and rollback"), the LayerSplit audit ("Preflight a pinned launch", "Build a live canary matrix", "Inject failures").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ranktop.recording.notes import CHANGED, MARK, OPENED, Note

AFTER_SECONDS = 120.0
"""Findings that opened so soon after a mark are told beside it: near in time, not proven to be its effect."""


class Check(Struct, frozen=True):
    """One test. `codes` are the findings that would show it going wrong."""

    id: str
    group: str
    test: str
    sign: str
    codes: tuple[str, ...] = ()


class Done(Struct, frozen=True):
    """A test as the recordings show it. `status`: `marked` (somebody says it was done) or `not shown`."""

    id: str
    status: str
    marked: list[str]
    findings_after: list[str]


_L2 = "requests of the L2 canary"
_EVICTION = "eviction, corruption, rollback"
_L3 = "L3 failures"
_ARGUMENTS = "LayerSplit argument controls"
_CANARY = "LayerSplit canary stages"
_FAILURES = "LayerSplit and PD failures"

CHECKS = (
    Check("R1", _L2, "an exact repeat of a long prefix, expected to restore from L2", "population l2; L2-PROVEN"),
    Check("R2", _L2, "a changed first page, expected to miss", "population cold; no rise of host hits"),
    Check(
        "R3", _L2, "a shared prefix with another task, expected to reuse the stable part", "population partial or l2"
    ),
    Check(
        "R4",
        _L2,
        "long prefixes that force L1 eviction, then the first again",
        "L1 evictions, then load-back; L2-PROVEN",
    ),
    Check(
        "E1",
        _EVICTION,
        "fill L1 until the target is evicted to L2",
        "rate.evict and rate.backup above 0",
        ("L2-DROPPED",),
    ),
    Check(
        "E2",
        _EVICTION,
        "restore it repeatedly beside concurrent misses",
        "load-back; pairs of l2 and cold requests",
        ("TIER-INCONSISTENT",),
    ),
    Check(
        "E3",
        _EVICTION,
        "fill L2 until the target goes, or is written to L3",
        "l2.used at its plateau",
        ("L2-CHURN", "L2-DROPPED"),
    ),
    Check(
        "E4",
        _EVICTION,
        "restore from L3 with one delayed rank and one backend time-out",
        "population l3",
        ("L3-RANK-SKEW", "L3-DEADLINE"),
    ),
    Check(
        "E5",
        _EVICTION,
        "repeat after restarts of process and backend",
        "LAUNCH-CHANGED, then hits again",
        ("RANK-RESTARTED",),
    ),
    Check(
        "E6",
        _EVICTION,
        "another template and model revision: namespaces stay apart",
        "no l3 hits across",
        ("L3-SHARED-MISMATCH", "LAUNCH-DRIFT"),
    ),
    Check("E7", _EVICTION, "MTP, last and apart", "acceptance length by population", ("SPEC-COLLAPSE",)),
    Check(
        "S1", _L3, "a key is absent although metadata has it", "fewer tokens loaded than asked", ("L3-PREFETCH-EMPTY",)
    ),
    Check("S2", _L3, "one rank receives fewer pages", "prefetched tokens by rank", ("L3-RANK-SKEW",)),
    Check("S3", _L3, "the backend stalls beyond the time-out", "tokens unfulfilled by deadline", ("L3-DEADLINE",)),
    Check("S4", _L3, "data arrives after the fallback to prefill", "the outside grader only", ("TIER-INCONSISTENT",)),
    Check(
        "S5", _L3, "an entry is evicted while load-back is in flight", "the outside grader only", ("TIER-INCONSISTENT",)
    ),
    Check(
        "S6", _L3, "two deployments share a namespace and do not fit", "both servers' launches", ("L3-SHARED-MISMATCH",)
    ),
    Check(
        "S7",
        _L3,
        "the backend restarts between write and read",
        "storage series stand still, then move",
        ("L3-PREFETCH-EMPTY",),
    ),
    Check(
        "S8",
        _L3,
        "an instance detaches storage while requests are active",
        "storage series on all ranks or none",
        ("L3-ATTACH-SPLIT",),
    ),
    Check("N1", _ARGUMENTS, "LayerSplit on the unified role: rejected at start", "ranktop plan: PLAN-REJECTED"),
    Check("N2", _ARGUMENTS, "LayerSplit on decode: rejected at start", "ranktop plan: PLAN-REJECTED"),
    Check("N3", _ARGUMENTS, "zigzag instead of interleave: rejected at start", "ranktop plan: PLAN-REJECTED"),
    Check("N4", _ARGUMENTS, "NIXL or Mori instead of Mooncake: rejected at start", "ranktop plan: PLAN-REJECTED"),
    Check("N5", _ARGUMENTS, "PP2: rejected at start", "ranktop plan: PLAN-REJECTED"),
    Check("N6", _ARGUMENTS, "CP1: starts, and nothing is sharded", "ordinary pool size", ("LAYER-CP1",)),
    Check(
        "N7", _ARGUMENTS, "a small model without DSA: rejected, or inactive", "no layer ranges logged", ("LAYER-CP1",)
    ),
    Check(
        "C1",
        _CANARY,
        "every rank logs its range and its pool",
        "layers.owned of every rank",
        ("LAYER-RANGE", "LAYER-DISAGREE"),
    ),
    Check(
        "C2", _CANARY, "owner broadcast of tagged data: no stale scratch", "the communicator's line", ("LAYER-NO-COMM",)
    ),
    Check(
        "C3",
        _CANARY,
        "one long request over PD: all ranks register",
        "pd.registered",
        ("PD-RANK-MISSING", "PD-FAILURES"),
    ),
    Check("C4", _CANARY, "answer parity on a fixed corpus", "the outside grader only"),
    Check("C5", _CANARY, "service load against the control", "ranktop compare"),
    Check(
        "F1",
        _FAILURES,
        "one owner rank stops before its broadcast",
        "the request fails loudly",
        ("RANK-DEAD", "PD-STUCK"),
    ),
    Check("F2", _FAILURES, "one prefill rank never registers", "no generation begins", ("PD-RANK-MISSING",)),
    Check("F3", _FAILURES, "duplicate registration or late response", "one fragment is accepted", ("PD-DUPLICATE",)),
    Check("F4", _FAILURES, "the transfer is interrupted", "failures by phase", ("PD-FAILURES",)),
    Check("F5", _FAILURES, "CP sizes differ between prefill and decode", "refused before traffic", ("LAUNCH-DRIFT",)),
    Check("F6", _FAILURES, "model revisions differ between roles", "refused before traffic", ("LAUNCH-DRIFT",)),
    Check("F7", _FAILURES, "scratch is reused under concurrency", "the outside grader only"),
    Check(
        "F8", _FAILURES, "the LayerSplit flag is removed: the ordinary cache serves", "LAUNCH-CHANGED; full pool size"
    ),
)


def done(notes: Iterable[Note]) -> list[Done]:
    """Every test of the lists as these events show it."""
    known = list(notes)
    return [_done(check, known) for check in CHECKS]


def _done(check: Check, notes: Sequence[Note]) -> Done:
    marks = [note for note in notes if note.kind == MARK and _names(note.text, check.id)]
    after = [
        f"{note.code} ({note.severity}) {note.at_unix_seconds - mark.at_unix_seconds:.0f} s after"
        for mark in marks
        for note in notes
        if note.kind in (OPENED, CHANGED)
        and note.severity != "info"
        and 0 <= note.at_unix_seconds - mark.at_unix_seconds <= AFTER_SECONDS
    ]
    return Done(check.id, "marked" if marks else "not shown", [mark.text for mark in marks], list(dict.fromkeys(after)))


def _names(text: str, identity: str) -> bool:
    first = text.split(maxsplit=1)[0] if text.split() else ""
    return first.rstrip(":,.").upper() == identity
