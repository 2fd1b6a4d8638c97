"""The fleet against a real Prometheus with 128 nodes of 8 ranks, and the exporter's page."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from collectors.prometheus import Access, Prometheus
from ranktop.exporter.families import points
from ranktop.exporter.page import Pages, render
from ranktop.exporter.server import MetricsServer
from ranktop.fleet.look import look, look_at_node, look_back
from ranktop.fleet.queries import Scope
from ranktop.reconcile import Reconciler
from ranktop.reconcile.verdict import Verdict
from support import samples
from support.prometheus import answered, pages, prometheus, target
from tests.bench.micro import Case, Work, measured
from tests.bench.rows import Peer, Row

NODES = 128
HISTORY_SECONDS = 20
_SCOPE = Scope(group="cluster")
_LIBRARY = "prometheus_client"


def rows() -> Iterator[Row]:
    """Design section 8 and issue 12: overview 1.2 s and 20 ms of CPU, a node 0.1 s, a scrape 5 ms and 60 KB."""
    page = render(points(_verdict()))
    yield Row("the exporter's page, 8 ranks", len(page) / 1e3, "kB", 60.0)
    ours, theirs, scrape = measured("fleet", "page")
    yield ours.beside(Peer(_LIBRARY, theirs.value))
    yield scrape
    if shutil.which("prometheus") is None:
        print("\nthe fleet is not measured: prometheus is not here (apt install prometheus)", file=sys.stderr)
        return
    nodes = [f"node-{number:03}:9472" for number in range(NODES)]
    with pages(lambda _: page) as address, tempfile.TemporaryDirectory() as folder:
        targets = [target(address, node, cluster="a") for node in nodes]
        with prometheus(Path(folder), targets, scrape_seconds=5.0) as url:
            answered(Prometheus(Access(url)), "ranktop_severity", NODES)
            time.sleep(HISTORY_SECONDS)
            yield from measured("fleet", "asked", url)


def cases(what: str, url: str = "") -> Iterator[Case]:
    """`page`, or `asked URL` with a Prometheus there."""
    if what == "page":
        yield Case("making the exporter's page, 8 ranks", _render, "ms", 5.0)
        yield Case(f"making the exporter's page, {_LIBRARY}", _render_by_library)
        yield Case("scraping the exporter", _scraping, "ms", 5.0, timer=time.perf_counter)
        return
    asked: tuple[tuple[str, float, float | None, Callable[[Prometheus], object]], ...] = (
        (f"overview of {NODES} nodes", 1.2, 0.02, lambda source: look(source, _SCOPE)),
        ("opening a node", 0.1, None, lambda source: look_at_node(source, _SCOPE, "node-000:9472")),
        ("the strip of all nodes", 1.2, None, _look_back),
    )
    for name, wall, cpu, ask in asked:
        make = _asking(url, ask)
        yield Case(f"fleet: {name}", make, "s", wall, times=2, timer=time.perf_counter)
        yield Case(f"fleet: {name}, CPU", make, "s", cpu, times=2, timer=time.thread_time)


def _asking(url: str, ask: Callable[[Prometheus], object]) -> Callable[[], Work]:
    def make() -> Work:
        source = Prometheus(Access(url))
        return lambda: ask(source)

    return make


def _look_back(source: Prometheus) -> object:
    now = time.time()
    return look_back(source, _SCOPE, now - 900, now, 120)


def _verdict() -> Verdict:
    reconciler = Reconciler()
    reconciler.update(samples.healthy())
    return reconciler.update(samples.healthy(5))


def _render() -> Work:
    verdict = _verdict()
    return lambda: render(points(verdict))


def _render_by_library() -> Work:
    """The same page by prometheus_client."""
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.exposition import generate_latest

    verdict = _verdict()

    class Registry:
        def collect(self) -> list[GaugeMetricFamily]:
            families: dict[str, GaugeMetricFamily] = {}
            for point in points(verdict):
                name = point.metric.name
                if name not in families:
                    families[name] = GaugeMetricFamily(name, point.metric.help, labels=point.metric.labels)
                families[name].add_metric(point.labels, point.value)
            return list(families.values())

    return lambda: generate_latest(Registry())  # type: ignore[arg-type]


def _scraping() -> Work:
    """With the page made anew, as the first scrape of a sample has it."""
    held, verdict = Pages(), _verdict()
    server = MetricsServer("127.0.0.1", 0, held)
    server.start()

    def scrape() -> None:
        held.put(verdict)
        with urllib.request.urlopen(server.url, timeout=5) as answer:
            assert answer.read()

    return scrape
