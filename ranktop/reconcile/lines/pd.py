"""What a rank has done between prefill and decode since its server's start."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.reconcile.compare import reading
from ranktop.reconcile.series import Series, labels_of
from ranktop.reconcile.verdict import Line
from ranktop.sample import RankTag

_FAILED = ("sglang:num_bootstrap_failed_reqs_total", "sglang:num_transfer_failed_reqs_total")


def pd_lines(series: Series | None, role: str | None, tag: RankTag, has_given_up: bool, stale: bool) -> Iterator[Line]:
    """`has_given_up`: the log says that this rank's attempts to register all failed."""
    away = "no prefill or decode role" if role == "unified" else "no metrics page" if series is None else ""
    yield reading(
        "pd.registered",
        0 if has_given_up else None,
        unit="count",
        source="logged",
        missing=away or "registration is logged at debug level, and the bootstrap server was not asked",
    )
    labels = labels_of(tag)
    transfers = series.own("sglang:kv_transfer_latency_ms_count", labels) if series is not None else None
    failed = [series.own(name, labels) for name in _FAILED] if series is not None else []
    known = [value for value in failed if value is not None]
    # These counters appear with their first event.
    seen = not away
    for name, value in (("pd.transfers", transfers), ("pd.failures", sum(known) if known else None)):
        yield reading(
            name,
            int(value or 0) if seen else None,
            unit="count",
            source="reported",
            missing=away,
            stale=stale,
        )
