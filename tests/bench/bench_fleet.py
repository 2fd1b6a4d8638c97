"""The fleet against a real Prometheus with 128 nodes of 8 ranks, and the exporter's page.

Budgets: overview 1.2 s wall and 20 ms client CPU, a node 100 ms, one node alone 10 ms, a scrape 5 ms and 60 KB.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest

from collectors.prometheus import Access, Prometheus
from ranktop.exporter.families import Point, points
from ranktop.exporter.page import render
from ranktop.fleet.look import look, look_at_node, look_back
from ranktop.fleet.queries import Scope
from ranktop.reconcile import Reconciler
from support import samples
from support.prometheus import answered, pages, prometheus, target

NODES = 128
RUNS = 7


def measured(name: str, call: Callable[[], object]) -> None:
    """Best and median of wall and CPU time."""
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(RUNS):
        wall, cpu = time.perf_counter(), time.thread_time()
        call()
        cpus.append((time.thread_time() - cpu) * 1e3)
        walls.append((time.perf_counter() - wall) * 1e3)
    print(
        f"{name:<34} wall {min(walls):8.1f} best {statistics.median(walls):8.1f} median   "
        f"cpu {min(cpus):6.1f} best {statistics.median(cpus):6.1f} median  ms",
        flush=True,
    )


def by_library(values: list[Point]) -> bytes:
    """The same page by prometheus_client."""
    families = {
        point.metric.name: GaugeMetricFamily(point.metric.name, point.metric.help, labels=point.metric.labels)
        for point in values
    }
    for point in values:
        families[point.metric.name].add_metric(point.labels, point.value)

    class Registry:
        def collect(self) -> list[GaugeMetricFamily]:
            return list(families.values())

    return generate_latest(Registry())  # type: ignore[arg-type]


def main() -> None:
    reconciler = Reconciler()
    reconciler.update(samples.healthy())
    verdict = reconciler.update(samples.healthy(5))
    page = render(points(verdict))
    print(f"page of 8 ranks: {len(page)} bytes, {page.count(b'ranktop_')} names")
    measured("page", lambda: render(points(verdict)))
    measured("page by prometheus_client", lambda: by_library(list(points(verdict))))
    with pages(lambda _: page) as address:
        for count in (1, NODES):
            nodes = [target(address, f"node-{number:03}:9472", cluster="a") for number in range(count)]
            with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder), nodes, scrape_seconds=5.0) as url:
                fleet_of(count, Prometheus(Access(url)))


def fleet_of(nodes: int, source: Prometheus) -> None:
    """What the screen asks, once the server holds some history."""
    answered(source, "ranktop_severity", nodes)
    time.sleep(20)
    scope = Scope(group="cluster")
    measured(f"overview of {nodes} nodes", lambda: look(source, scope))
    measured(f"one of {nodes}, rank by rank", lambda: look_at_node(source, scope, "node-000:9472"))
    now = time.time()
    measured(f"strip of {nodes} nodes, 15 min", lambda: look_back(source, scope, now - 900, now, 120))


if __name__ == "__main__":
    main()
