"""What a rank has done between prefill and decode since its server's start."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.reconcile.compare import reading
from ranktop.reconcile.ranklabels import labels_of
from ranktop.reconcile.series import Series
from ranktop.reconcile.verdict import Line
from ranktop.sample import Bootstrap, RankTag

_COUNTED = {
    "pd.transfers": ("sglang:kv_transfer_latency_ms_count",),
    "pd.failures": ("sglang:num_bootstrap_failed_reqs_total", "sglang:num_transfer_failed_reqs_total"),
}


def pd_lines(
    series: Series | None, role: str | None, tag: RankTag, bootstrap: Bootstrap | None, has_given_up: bool, stale: bool
) -> Iterator[Line]:
    """`has_given_up`: the log says that this rank's attempts to register all failed."""
    away = "no prefill or decode role" if role == "unified" else "no metrics page" if series is None else ""
    registered = is_registered(bootstrap, tag) if bootstrap is not None else None
    yield reading(
        "pd.registered",
        0 if has_given_up else None if registered is None else int(registered),
        unit="count",
        source="logged" if has_given_up else "reported",
        missing=away or _why_unknown(bootstrap),
    )
    for name, counters in _COUNTED.items():
        # These counters appear with their first event.
        seen = None if away or series is None else int(sum(_own(series, counter, tag) for counter in counters))
        yield reading(name, seen, unit="count", source="reported", missing=away, stale=stale)


def _why_unknown(bootstrap: Bootstrap | None) -> str:
    if bootstrap is None or bootstrap.is_ready or bootstrap.registered_ranks is None:
        return "no answer of a bootstrap server for this rank"
    of_all = "" if bootstrap.expected_ranks is None else f" of {bootstrap.expected_ranks}"
    return f"{bootstrap.registered_ranks}{of_all} ranks have registered; the bootstrap server names none until all have"


def _own(series: Series, name: str, tag: RankTag) -> float:
    return series.own(name, labels_of(tag)) or 0.0


def is_registered(bootstrap: Bootstrap, tag: RankTag) -> bool | None:
    """Whether the bootstrap server has this rank; None while it tells of no single one.

    A title's TP rank is global within the engine, the bootstrap server's lies within the attention group.
    """
    width = max((rank.tp for rank in bootstrap.ranks), default=0) + 1
    place = (tag.dp or 0, tag.cp or 0, (tag.tp or 0) % width, tag.pp or 0)
    found = (rank.is_registered for rank in bootstrap.ranks if (rank.dp, rank.cp, rank.tp, rank.pp) == place)
    return next(found, None)
