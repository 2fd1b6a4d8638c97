"""A router's or gateway's own metrics page (`--router-url`): latency from admission, which no engine sees.

Families of `sgl_router_*` (sglang-router) and `smg_*` (its successor, the model gateway; port 29000 by default).
The page is small and rare, so the official parser reads it.
"""

from __future__ import annotations

import math
import re

from prometheus_client.parser import text_string_to_metric_families

from collectors.http import failure, get
from collectors.metrics import checked_text, page_url
from ranktop.sample import MetricsPage, Processes, SeriesKey, SourceError

MAX_POINTS = 20_000
_DEADLINE_SECONDS = 5.0
_MAX_BYTES = 4 << 20
_FAMILY = re.compile(r"(?:sgl_router|smg)_\w+")


class RouterCollector:
    """Reads one router's page. Its entry in the sample goes by the router's URL."""

    name = "router"
    part = "routers"

    def __init__(self, url: str, period_seconds: float = 5.0) -> None:
        self._page_url = page_url(url)[1]
        self._id = url.rstrip("/")
        self.server: str | None = self._id
        self.period_seconds = period_seconds

    def read(self, processes: Processes | None, now: float) -> MetricsPage:
        """One scrape. Raises SourceError with the code of what came back."""
        answer = get(self._page_url, deadline_seconds=_DEADLINE_SECONDS, max_bytes=_MAX_BYTES)
        if answer.status != 200:
            raise failure(answer)
        values, families = parse_router_page(checked_text(answer))
        if not values:
            raise SourceError(
                f"GET {answer.url}: no sgl_router_* or smg_* metrics on the page: is this the router's metrics port?",
                "wrong_port",
            )
        return MetricsPage(
            self._id,
            now + answer.took_seconds,
            answer.took_seconds,
            len(answer.body),
            tuple(values),
            tuple(values.values()),
            families,
        )


def parse_router_page(text: str) -> tuple[dict[SeriesKey, float], int]:
    """Values of the router's families and the number of other families. Raises SourceError on a page it cannot read."""
    values: dict[SeriesKey, float] = {}
    others = 0
    try:
        for family in text_string_to_metric_families(text):
            if not _FAMILY.fullmatch(family.name):
                others += 1
                continue
            values |= {
                SeriesKey(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                for sample in family.samples[: MAX_POINTS - len(values)]
                if math.isfinite(sample.value)
            }
    except (ValueError, KeyError, IndexError) as error:
        raise SourceError(f"the router's page is not Prometheus text ({type(error).__name__})", "bad_answer") from None
    return values, others
