"""`/metrics` of one SGLang server: the families of `ranktop.reconcile.families`, raw.

A scrape costs the server 45 to 220 ms in the event loop that also streams tokens, so the cadence follows the measured
response time and gzip is never asked for. The OpenMetrics form is not either: its names are mangled.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from collectors.connections import is_other_network
from collectors.exposition import Exposition, ExpositionParser
from collectors.http import Answer, failure, get, shown
from ranktop.reconcile.families import SERIES_NAMES
from ranktop.sample import MetricsPage, Processes, SourceError

DEFAULT_PERIOD_SECONDS = 5.0
SHARE_OF_SERVER = 100
"""A scrape is never closer than this many times its own response time: at most 1 % of the server's HTTP process."""

AFTER_TIMEOUT_SECONDS = 30.0
"""A server that did not answer in time still works on the scrape when it comes back: they must not pile up."""

_DEADLINE_SECONDS = 5.0
_NOT_REACHED = frozenset({"refused", "unreachable", "timeout"})
_HEADERS = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "identity"}


class MetricsCollector:
    """Reads one server's page into a MetricsPage. `url` is the server's base URL or that of the page itself.

    `serves` False: a stand-in server, which streams no tokens that a scrape could delay.
    """

    name = "metrics"
    part = "metrics"

    def __init__(
        self, server: str, url: str, period_seconds: float = DEFAULT_PERIOD_SECONDS, *, serves: bool = True
    ) -> None:
        self.server: str | None = server
        self._id = server
        self._base, self._page_url = page_url(url)
        self._least_period_seconds = period_seconds
        self._share = SHARE_OF_SERVER if serves else 1
        self._took_seconds = 0.0
        self._timed_out = False
        self.is_failing = False
        self._parser = ExpositionParser(SERIES_NAMES)

    @property
    def period_seconds(self) -> float:
        """The asked cadence, or 100 times the last response time if that is longer; 30 s after a time-out."""
        busy = AFTER_TIMEOUT_SECONDS if self._timed_out else self._share * self._took_seconds
        return max(self._least_period_seconds, busy)

    def read(self, processes: Processes | None, now: float) -> MetricsPage:
        """One scrape. `now` is Unix time. Raises SourceError with the code of what came back."""
        try:
            page = self._scrape(now)
        except SourceError as error:
            self.is_failing, self._timed_out = True, error.code == "timeout"
            raise _told_of_namespace(error, processes, self._id) from None
        self.is_failing = self._timed_out = False
        return page

    def _scrape(self, now: float) -> MetricsPage:
        answer = get(self._page_url, headers=_HEADERS, deadline_seconds=_DEADLINE_SECONDS)
        self._took_seconds = answer.took_seconds
        if answer.status == 404:
            raise self._not_found()
        if answer.status != 200:
            raise failure(answer)
        page = self._parser.parse(checked_text(answer))
        check_families(answer.url, page)
        return MetricsPage(
            server=self._id,
            at_unix_seconds=now + answer.took_seconds,
            took_seconds=answer.took_seconds,
            size_bytes=len(answer.body),
            keys=page.keys,
            values=page.values,
            other_families=page.families - page.wanted_families,
        )

    def _not_found(self) -> SourceError:
        """Metrics switched off, or somebody else's port: `/model_info` is local, cheap and only SGLang's."""
        try:
            is_sglang = is_model_info(get(f"{self._base}/model_info", deadline_seconds=_DEADLINE_SECONDS))
        except SourceError:
            is_sglang = False
        if is_sglang:
            return SourceError(
                f"GET {shown(self._page_url)}: 404: metrics are off (--enable-metrics at the next planned start; "
                "a restart now loses L1 and L2)",
                "http_404",
            )
        return SourceError(
            f"GET {shown(self._page_url)}: 404, and no SGLang answers /model_info there: wrong port? (give --url)",
            "wrong_port",
        )


def _told_of_namespace(error: SourceError, processes: Processes | None, server: str) -> SourceError:
    """The same error; of a server whose address is not ours, with what to do."""
    main = next((main for main in processes.servers if main.id == server), None) if processes is not None else None
    if main is None or main.pid is None or error.code not in _NOT_REACHED or not is_other_network(main.pid):
        return error
    return SourceError(
        f"{error}: pid {main.pid} is in another network namespace (give its address from here with --url)", error.code
    )


def page_url(url: str) -> tuple[str, str]:
    """Base URL of the server and URL of its page, from either."""
    path = urlsplit(url).path.rstrip("/")
    bare = url.partition("?")[0].rstrip("/")
    if path.endswith("/metrics"):
        return bare[: -len("/metrics")], url
    return bare, f"{bare}/metrics"


def is_model_info(answer: Answer) -> bool:
    """Whether this answer is SGLang's `/model_info`. One that wants a key is taken for SGLang's."""
    if answer.status in (401, 403):
        return True
    if answer.status != 200:
        return False
    try:
        found = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(found, dict) and "model_path" in found


def checked_text(answer: Answer) -> str:
    """The page as text. A page that is empty or does not end with a line end is refused."""
    if not answer.body.strip():
        raise SourceError(
            f"GET {answer.url}: 200 with an empty page (no SGLang process has written metrics yet, "
            "or its PROMETHEUS_MULTIPROC_DIR is gone)",
            "empty",
        )
    if not answer.body.endswith(b"\n"):
        raise SourceError(
            f"GET {answer.url}: the page breaks off within a line after {len(answer.body)} bytes", "truncated"
        )
    return answer.body.decode("utf-8", "replace")


def check_families(url: str, page: Exposition) -> None:
    """Refuse a page on which nothing is SGLang's: no number of it may be taken for one."""
    if page.keys or page.wanted_families:
        return
    if page.families:
        raise SourceError(
            f"GET {url}: {page.families} metric families and none of SGLang's: another program's page? (give --url)",
            "wrong_port",
        )
    raise SourceError(f"GET {url}: 200, but no metrics on the page (not a Prometheus page)", "empty")
