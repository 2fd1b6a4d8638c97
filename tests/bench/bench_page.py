"""One metrics page: of 8, 64 and 1,024 ranks, and of 1.25 MB as a busy server of 8 ranks has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from collectors.exposition import ExpositionParser
from ranktop.reconcile.families import FAMILIES, SERIES_NAMES
from tests.bench.many import RANKS
from tests.bench.micro import Case, Work, measured
from tests.bench.rows import Peer, Row

BIG_PAGE_BYTES = 1_250_000
_LIBRARY = "prometheus_client.parser"
_LABELS = 'engine_type="unified",model_name="GLM-5.2-FP8",moe_ep_rank="0",pp_rank="0"'


def rows() -> Iterator[Row]:
    """Design section 8: a page of 1.25 MB in 4 ms. The library's parser returns every sample of the page."""
    found = list(measured("page"))
    theirs = {row.name: row.value for row in found if _LIBRARY in row.name}
    for row in found:
        peer = theirs.get(f"{row.name}, {_LIBRARY}")
        if peer is not None:
            yield row.beside(Peer(_LIBRARY, peer))
        elif row.name not in theirs:
            yield row


def cases() -> Iterator[Case]:
    yield Case("a metrics page of 1.25 MB", _ours(big_page), "ms", 4.0)
    yield Case(f"a metrics page of 1.25 MB, {_LIBRARY}", _library(big_page), times=1)
    for ranks in RANKS:
        times = {8: 50, 64: 10}.get(ranks, 1)
        yield Case(f"a metrics page of {ranks} ranks", _ours(lambda ranks=ranks: page_of(ranks)), times=times)
    yield Case(f"a metrics page of 8 ranks, {_LIBRARY}", _library(lambda: page_of(8)), times=1)


def page_of(ranks: int) -> str:
    """Every family that is read, and nothing else; as many series of each as its writers make of so many ranks."""
    return "\n".join(_wanted(ranks)) + "\n"


def big_page() -> str:
    """About 1.25 MB: 8 ranks of every family that is read, and buckets of families that are not, as SGLang has them."""
    wanted = _wanted(8)
    other, size = [], sum(map(len, wanted))
    while size < BIG_PAGE_BYTES:
        line = f'sglang:queue_time_seconds_bucket{{{_LABELS},le="{len(other)}",tp_rank="{len(other) % 8}"}} 24.0'
        other.append(line)
        size += len(line) + 1
    return "\n".join([*wanted, *other]) + "\n"


def _wanted(ranks: int) -> list[str]:
    groups = {"http": 1, "stats": max(1, ranks // 8)}
    return [
        f'{name}{{{_LABELS},tp_rank="{rank}"}} {rank + 1}.0'
        for family in FAMILIES.values()
        for name in family.series_names
        for rank in range(groups.get(family.writer, ranks))
    ]


def _ours(text: Callable[[], str]) -> Callable[[], Work]:
    """Warm, as all pages but the first are."""

    def make() -> Work:
        parser, page = ExpositionParser(SERIES_NAMES), text()
        return lambda: parser.parse(page)

    return make


def _library(text: Callable[[], str]) -> Callable[[], Work]:
    def make() -> Work:
        from prometheus_client.parser import text_string_to_metric_families

        page = text()
        return lambda: list(text_string_to_metric_families(page))

    return make
