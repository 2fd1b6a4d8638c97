"""What a rank moves between the tiers, a second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ranktop.lazy import lazy
from ranktop.reconcile.compare import reading
from ranktop.reconcile.ranklabels import labels_of
from ranktop.reconcile.series import Series
from ranktop.reconcile.tiers import is_absent_zero
from ranktop.reconcile.verdict import Line
from ranktop.sample import RankTag


class Gains(Struct, frozen=True, dict=True):
    """What a server's counters gained between two pages, for its ranks. `ranks` is how many it has."""

    series: Series
    seconds: float | None
    version: str | None
    ranks: int

    @lazy
    def of_any(self) -> dict[str, tuple[float | None, bool]]:
        """Radix counters that do not tell the ranks apart: what each has, and whether it is a share of a sum."""
        found: dict[str, tuple[float | None, bool]] = {}
        for name in (*(counter.name for counter in _RADIX), *_COPIED, *_COPYING):
            places = self.series.index.groups(name, *_RANK).places
            if not places:
                found[name] = (None, False)
            elif len(places) != self.ranks:
                found[name] = ((self.series.total(name) or 0.0) / self.ranks, self.ranks > 1)
        return found

    @lazy
    def lines_of_any(self) -> dict[tuple[str, bool], Line]:
        """By name and staleness: lines that are the same for every rank."""
        radix = [(counter, self.of_any[counter.name]) for counter in _RADIX if counter.name in self.of_any]
        storage = [(counter, (None, False)) for counter in _STORAGE if counter.name not in self.series]
        lines = [_rate(counter, self, value, group, False) for counter, (value, group) in (*radix, *storage)]
        if all(name in self.of_any for name in (*_COPIED, *_COPYING)):
            lines.append(_copy_rate([self.of_any[name] for name in _COPIED], [self.of_any[name] for name in _COPYING]))
        return {(line.line, stale): replace(line, stale=stale) for line in lines for stale in (False, True)}


class _Counter(NamedTuple):
    line: str
    unit: str
    name: str
    labels: tuple[tuple[str, str], ...] = ()


_RADIX = (
    _Counter("rate.load_back", "bytes_per_second", "sglang:load_back_bytes_total"),
    _Counter("rate.backup", "bytes_per_second", "sglang:hicache_backup_bytes_total"),
    _Counter("rate.evict", "tokens_per_second", "sglang:evicted_tokens_total"),
    _Counter("rate.dropped", "tokens_per_second", "sglang:hicache_dropped_tokens_total"),
)
_STORAGE = (
    _Counter("rate.prefetch", "tokens_per_second", "sglang:prefetched_tokens_total"),
    _Counter("rate.storage_backup", "tokens_per_second", "sglang:backuped_tokens_total"),
)
_Gain = tuple[float | None, bool]
"""None where there is no such series, and whether it is a share of a sum over ranks."""

_RANK = ("dp_rank", "pp_rank", "tp_rank")
_CP_SIZE = "attn_cp_size"
_COPIED = ("sglang:load_back_bytes_total", "sglang:hicache_backup_bytes_total")
_COPYING = ("sglang:load_back_duration_seconds_sum", "sglang:hicache_backup_duration_seconds_sum")


def rate_lines(gains: Gains | None, tag: RankTag, stale: bool) -> Iterator[Line]:
    """Rates over the last two pages. Until 0.5.20 the ranks of a server are one series: a rank's rate is a share."""
    if gains is None or gains.seconds is None:
        for counter in (*_RADIX, *_STORAGE):
            yield reading(counter.line, None, unit=counter.unit, source=None, missing="needs two metrics pages")
        yield reading("rate.copy", None, unit="bytes_per_second", source=None, missing="needs two metrics pages")
        return
    of_any = gains.lines_of_any
    for counter in _RADIX:
        known = of_any.get((counter.line, stale))
        yield known or _rate(counter, gains, *_of_rank(gains, counter.name, tag), stale)
    for counter in _STORAGE:
        known = of_any.get((counter.line, stale))
        yield known or _rate(counter, gains, _own_storage(gains.series, counter.name, tag), False, stale)
    known = of_any.get(("rate.copy", stale))
    if known is None:
        copied, copying = ([_of_rank(gains, name, tag) for name in names] for names in (_COPIED, _COPYING))
        known = replace(_copy_rate(copied, copying), stale=stale)
    yield known


def _rate(counter: _Counter, gains: Gains, value: float | None, group: bool, stale: bool) -> Line:
    if value is None and is_absent_zero(gains.series, counter.name, gains.version):
        value = 0.0
    return reading(
        counter.line,
        value / gains.seconds if value is not None and gains.seconds else None,
        unit=counter.unit,
        source="reported",
        missing="no such series on the page (no such tier, version or event yet)",
        group=group,
        stale=stale,
    )


def _of_rank(gains: Gains, name: str, tag: RankTag) -> tuple[float | None, bool]:
    """The rank's own gain, or an equal share of a sum over ranks, and whether it is such a share.

    From 0.5.21 radix series carry dp_rank, pp_rank and tp_rank, the last within the attention group: context-parallel
    ranks and plain-DP replicas still share a label set.
    """
    shared = gains.of_any.get(name)
    if shared is not None:
        return shared
    groups = gains.series.index.groups(name, *_RANK)
    labels = labels_of(tag)
    own = (str(labels.dp), str(labels.pp), str(labels.tp % groups.widths[2]))
    return sum(gains.series.at(groups.places.get(own, ()))), False


def _copy_rate(copied: Sequence[_Gain], copying: Sequence[_Gain]) -> Line:
    """Bytes a second of copying, both ways together."""
    size_bytes = sum(value for value, _ in copied if value is not None)
    seconds = sum(value for value, _ in copying if value is not None)
    return reading(
        "rate.copy",
        size_bytes / seconds if size_bytes and seconds else None,
        unit="bytes_per_second",
        source="reported",
        missing="no copy between L1 and L2 in the window",
        group=any(group for _, group in copied),
    )


def _own_storage(series: Series, name: str, tag: RankTag) -> float | None:
    """Storage series are labelled per rank in every version, tp_rank within the attention group.

    How wide that group is, the rows do not tell: with MLA its first rank alone writes to storage.
    """
    labels, index = labels_of(tag), series.index
    peers = index.peers(labels) or labels.tp + 1
    groups = index.groups(name, *_RANK, "attn_cp_rank", _CP_SIZE)
    found: list[float] = []
    for (size,) in index.groups(name, _CP_SIZE).places:
        # Ranks of an attention group, when `peers` ranks share a DP group and a pipeline stage.
        width = max(1, peers // ((int(size) if size.isdecimal() else 0) or 1))
        own = (str(labels.dp), str(labels.pp), str(labels.tp % width), str(tag.cp or 0), size)
        found += series.at(groups.places.get(own, ()))
    return found[0] if len(found) == 1 else None
