"""What a report draws: lines over time, from verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ranktop.reconcile.verdict import ServerVerdict, Verdict

Value = float | int | None


class Trace(Struct, frozen=True):
    """One line of a chart, a value for every time of the page."""

    label: str
    values: list[Value]
    dashed: bool = False
    """A plan or a limit, not something seen."""


class Chart(Struct, frozen=True):
    """One chart. `unit` is written beside its title."""

    title: str
    unit: str
    traces: list[Trace]


class _Plotter:
    """Gathers the lines of one chart; a line that begins late has no values before."""

    def __init__(self, title: str, unit: str, scale: float = 1.0) -> None:
        self.title = title
        self.unit = unit
        self._scale = scale
        self._values: dict[tuple[str, bool], list[Value]] = {}
        self._count = 0

    def put(self, label: str, value: Value, dashed: bool = False) -> None:
        """A value at the newest time."""
        if value is None:
            return
        line = self._values.setdefault((label, dashed), [])
        line.extend([None] * (self._count - 1 - len(line)))
        line.append(round(value / self._scale, 4))

    def next(self) -> None:
        """A new time."""
        self._count += 1

    def chart(self) -> Chart:
        """The chart of all that was put."""
        for line in self._values.values():
            line.extend([None] * (self._count - len(line)))
        return Chart(
            self.title, self.unit, [Trace(label, line, dashed) for (label, dashed), line in self._values.items()]
        )


def charts(verdicts: Iterable[Verdict]) -> tuple[list[float], list[Chart]]:
    """(times in Unix seconds, charts that have at least one line)."""
    times: list[float] = []
    plots = {name: _Plotter(*how) for name, how in _CHARTS.items()}
    for verdict in verdicts:
        times.append(verdict.sample.at_unix_seconds)
        for plot in plots.values():
            plot.next()
        _node(verdict, plots)
        for server in verdict.servers:
            _server(server, plots, several=len(verdict.servers) > 1)
        for rank in verdict.ranks:
            name = rank.rank if len(verdict.servers) < 2 else f"{rank.server} {rank.rank}"
            for chart, lines in _RANK_LINES.items():
                found = [rank.line(line) for line in lines]
                plots[chart].put(name, _sum(line.seen for line in found))
                if chart in _PLANNED:
                    plots[chart].put("planned", _sum(line.planned for line in found), dashed=True)
    made = [plot.chart() for plot in plots.values()]
    return times, [chart for chart in made if chart.traces]


_CHARTS: dict[str, tuple[str, str, float]] = {
    "pools": ("Host pools of each rank, primary + indexer", "GB (1e9 bytes)", 1e9),
    "hbm": ("HBM of each rank's process", "GiB", float(1 << 30)),
    "anon": ("Anonymous memory of each rank", "GB (1e9 bytes)", 1e9),
    "memory": ("Host memory", "GB (1e9 bytes)", 1e9),
    "pressure": ("Memory pressure, some avg10", "percent", 1.0),
    "local": ("Pool pages near the GPU", "percent", 1.0),
    "hits": ("Prefill tokens by tier", "percent", 0.01),
    "transfers": ("Bytes moved between tiers", "GB/s", 1e9),
    "l2": ("L2 in use", "million tokens", 1e6),
    "ttft": ("Time to first token", "seconds", 1.0),
    "e2e": ("End-to-end latency", "seconds", 1.0),
    "throughput": ("Generation", "tokens/s", 1.0),
    "requests": ("Requests", "count", 1.0),
}
_RANK_LINES = {
    "pools": ("host.primary", "host.indexer"),
    "hbm": ("hbm.process",),
    "anon": ("host.anon",),
    "local": ("numa.local",),
    "l2": ("l2.used",),
}
_PLANNED = frozenset({"pools"})


def _node(verdict: Verdict, plots: dict[str, _Plotter]) -> None:
    node = verdict.node
    plots["memory"].put("available", node.line("host.available").seen)
    plots["memory"].put("cgroup working set", node.line("host.cgroup").seen)
    plots["memory"].put("pools of all ranks", node.line("host.pools").seen)
    plots["memory"].put("total", node.line("host.total").seen, dashed=True)
    plots["memory"].put("reserve", node.line("host.reserve").planned, dashed=True)
    plots["pressure"].put("node", node.line("host.pressure").seen)
    plots["requests"].put("running", node.line("requests.running").seen)
    plots["requests"].put("queued", node.line("requests.queued").seen)
    tiers, moved = verdict.tiers, verdict.transfers
    for label, share in (
        ("L1", tiers.device_hit),
        ("L2", tiers.host_hit),
        ("L3", tiers.storage_hit),
        ("miss", tiers.miss),
    ):
        plots["hits"].put(label, share)
    plots["transfers"].put("L1 > L2", moved.backup_bytes_per_second)
    plots["transfers"].put("L2 > L1", moved.load_back_bytes_per_second)
    plots["transfers"].put("L3 > L2", moved.prefetch_bytes_per_second)


def _server(server: ServerVerdict, plots: dict[str, _Plotter], several: bool) -> None:
    prefix = f"{server.id} " if several else ""
    for chart, latency in (("ttft", server.service.ttft_seconds), ("e2e", server.service.e2e_seconds)):
        for quantile in ("p50", "p95", "p99"):
            plots[chart].put(prefix + quantile, getattr(latency, quantile))
    plots["throughput"].put(prefix + "tokens/s", server.service.tokens_per_second)


def _sum(values: Iterator[Value]) -> Value:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
