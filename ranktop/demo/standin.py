"""What happens on the stand-in each second: traffic, the ranks' series, log lines, the hardware's state."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from collectors.placement import PERIOD_SECONDS
from ranktop.clock import NodeClock, iso_utc
from ranktop.demo import loglines, series, serverinfo
from ranktop.demo.bootstrap import route
from ranktop.demo.child import Child
from ranktop.demo.endpoints import Endpoints, Page, Reply
from ranktop.demo.exposition import TOKENIZER_FAMILIES, Operation, Writer, rank_labels, render
from ranktop.demo.gpus import RankUse, numa_node, simulated_gpus
from ranktop.demo.launch import HOST
from ranktop.demo.memory import simulated_cgroup, simulated_host, simulated_numa, simulated_placement
from ranktop.demo.ranks import Ranks, StartError
from ranktop.demo.scenarios import Event, Scenario
from ranktop.demo.script import Script
from ranktop.demo.sizes import demo_plan, pool_sizes
from ranktop.demo.state import resident_shmem_bytes, write_state
from ranktop.demo.traffic import Traffic
from ranktop.sample.demo_state import DemoState

_DECODE_LOG_TICKS = 4
_MOST_AT_THE_DOOR = 60


class StandIn:
    """One server. StartError when its port cannot be had."""

    def __init__(self, scenario: Scenario, seed: int, clock: NodeClock, directory: Path, port: int) -> None:
        self.sizes = pool_sizes(scenario.launch)
        self.is_settled = False
        """Every rank has started, and the server is ready if it ever will be."""
        self._scenario = scenario
        self._clock = clock
        self._directory = directory
        plans = demo_plan(scenario.launch).ranks
        self._tags = [plan.rank for plan in plans] if len(plans) > 1 else [""]
        self._traffic = Traffic(seed, self.sizes.tokens, scenario.profile)
        self._script = Script(scenario)
        role = demo_plan(scenario.launch).launch.role
        self._writer = Writer(TOKENIZER_FAMILIES, rank_labels(0, role))
        self._settled_at: float | None = None
        self._ticks = 0
        self._step = self._traffic.step(1.0)
        self._kernel_lines: list[str] = []
        try:
            self._endpoints = Endpoints(port)
        except OSError as error:
            raise StartError(f"port {port} on {HOST}: {error.strerror} (choose another with --port)") from None
        self._bootstrap = Endpoints(0) if role == "prefill" else None
        own = {} if self._bootstrap is None else {"disaggregation_bootstrap_port": self._bootstrap.port}
        self._args = serverinfo.server_args(self.port, scenario.launch, scenario.args | own)

    @property
    def port(self) -> int:
        return self._endpoints.port

    @property
    def bootstrap_port(self) -> int | None:
        """None where it is no prefill worker."""
        return self._bootstrap.port if self._bootstrap is not None else None

    def log_start(self) -> None:
        """Everything up to the host pools."""
        for args in (*self._scenario.earlier_args, {}):
            self._log(loglines.server_args(self._args | args))
        starts = [loglines.start_up(tp, self.sizes) for tp in range(len(self._tags))]
        for number in range(max(map(len, starts))):
            for tag, lines in zip(self._tags, starts, strict=True):
                if number < len(lines):
                    self._log(lines[number], tag)
        split = demo_plan(self._scenario.launch).layer_split
        for tp, tag in enumerate(self._tags):
            early = self._scenario.layers_early.get(tp, 0)
            shards = loglines.shard_plan(tp, split.ranges, early) if split.active else []
            pools = loglines.host_pools(self.sizes)[: self._scenario.pools_made.get(tp, 2)]
            for text in (*shards, *pools):
                self._log(text, tag)

    def settle(self, ranks: Ranks) -> None:
        """All ranks have started: constants, then listen, then say so, unless the scenario stops here."""
        if not self._scenario.never_ready:
            for tp, child in ranks.live.items():
                child.tell(_order(series.constants(tp, self.sizes)))
            self._writer.apply(series.tokenizer_start())
            if self._bootstrap is not None:
                self._bootstrap.open({"/route": route(self._args, self._scenario.unregistered)})
            self._endpoints.open(self._pages())
            self._log(loglines.READY)
        self._settled_at = self._clock()
        self.is_settled = True

    def close(self) -> None:
        """Log the end that was asked for, and answer no more."""
        self._log(loglines.SIGTERM)
        self._endpoints.close()
        if self._bootstrap is not None:
            self._bootstrap.close()

    def tick(self, ranks: Ranks, seconds: float) -> None:
        """Let `seconds` pass, times the clock's speed. Before ready only the hardware is there."""
        live = ranks.live
        if self.is_settled:
            for event in self._script.due(self._since_settled):
                self._play(event, live)
        if self._hangs:
            self._writer.apply(series.at_the_door(self._at_the_door))
        elif self._serves:
            self._serve(live, seconds * self._clock.speed)
        write_state(self._directory / "state.json", self._state(live, ranks.orphan_pid))

    @property
    def _serves(self) -> bool:
        return self.is_settled and not self._scenario.never_ready

    @property
    def _since_settled(self) -> float:
        return 0.0 if self._settled_at is None else self._clock() - self._settled_at

    @property
    def _hangs(self) -> bool:
        after = self._scenario.hangs_after_seconds
        return self._serves and after is not None and self._since_settled >= after

    @property
    def _at_the_door(self) -> int:
        since = self._since_settled - (self._scenario.hangs_after_seconds or 0.0)
        arrived = int(since * self._scenario.profile.requests_per_second)
        return min(_MOST_AT_THE_DOOR, 1 + self._step.running + self._step.queued + arrived)

    def _serve(self, live: dict[int, Child], seconds: float) -> None:
        self._step = step = self._traffic.step(seconds)
        now = self._since_settled
        overrides = {gauge.name: gauge.value for gauge in self._scenario.gauges if gauge.after_seconds <= now}
        ordered = series.every_rank(step, self.sizes)
        reported = _order(ordered + series.stats_rank(step, self.sizes, overrides))
        silent = _order(ordered)
        for tp, child in live.items():
            child.tell(reported if tp == 0 or self._scenario.launch.all_schedulers else silent)
        self._writer.apply(series.tokenizer(step, overrides.get("spec_accept_length")))
        self._ticks += 1
        for batch in step.prefills:
            self._log(loglines.prefill(step, batch), self._tags[0])
        if step.running and self._ticks % _DECODE_LOG_TICKS == 0:
            self._log(loglines.decode(step, overrides), self._tags[0])

    def _play(self, event: Event, live: dict[int, Child]) -> None:
        tag = "" if event.tp is None else self._tags[event.tp]
        if event.action == "exit":
            self._log(loglines.exception(event.text), tag)
        elif event.text:
            self._log(event.text, tag)
        child = None if event.tp is None else live.get(event.tp)
        if child is None:
            return
        if event.action == "exit":
            child.tell(b'{"exit": 1}\n')
        elif event.action == "grow":
            child.tell(json.dumps({"grow": event.grow_bytes}).encode() + b"\n")
        elif event.action == "oom_kill":
            at = iso_utc(self._clock())
            lines = loglines.oom_kill(child.pid, resident_shmem_bytes(child.pid))
            self._kernel_lines += [f"{at} {line}" for line in lines]
            os.kill(child.pid, signal.SIGKILL)

    def _state(self, live: dict[int, Child], orphan_pid: int | None) -> DemoState:
        now, scenario = self._clock(), self._scenario
        busy = self._serves and not self._hangs
        load = min(1.0, self._step.running / scenario.profile.max_running) if busy else 0.0
        uses = [self._use(tp, child.pid, scenario.far_percent.get(tp, 0.0)) for tp, child in live.items()]
        if orphan_pid is not None and scenario.orphan is not None:
            uses.append(self._use(scenario.orphan, orphan_pid, orphan=True))
        oom_kills = sum("oom-kill:" in line for line in self._kernel_lines)
        host = simulated_host(uses, scenario.host, self._since_settled, oom_kills)
        cgroup = simulated_cgroup(uses, scenario.host, host, oom_kills)
        return DemoState(
            at_unix_seconds=now,
            scenario=scenario.name,
            host=host,
            numa=simulated_numa(uses, scenario.host, host),
            gpus=simulated_gpus(scenario.launch.gpus, uses, self.sizes, self._since_settled, load),
            placements={use.pid: (simulated_placement(use, now - now % PERIOD_SECONDS),) for use in uses},
            cgroups={} if cgroup is None else {use.pid: cgroup for use in uses},
            kernel_lines=tuple(self._kernel_lines),
        )

    def _use(self, tp: int, pid: int, far_percent: float = 0.0, orphan: bool = False) -> RankUse:
        node = numa_node(tp, self._scenario.launch.gpus)
        return RankUse(tp, pid, resident_shmem_bytes(pid), node, far_percent, orphan)

    def _log(self, message: str, tag: str = "") -> None:
        os.write(sys.stderr.fileno(), loglines.line(self._clock(), message, tag).encode())

    def _pages(self) -> dict[str, Page]:
        def as_json(body: dict[str, Any]) -> Reply:
            return Reply("application/json", json.dumps(body).encode())

        def metrics() -> Reply:
            return Reply("text/plain; version=0.0.4; charset=utf-8", render(str(self._directory / "metrics")))

        launch = self._scenario.launch
        return {
            "/metrics": lambda _: metrics(),
            "/server_info": lambda _: as_json(
                serverinfo.server_info(self._args, launch.version, self.sizes, self._step)
            ),
            "/model_info": lambda _: as_json(serverinfo.model_info()),
            "/v1/loads": lambda _: as_json(serverinfo.loads(launch, self.sizes, self._step, self._clock())),
        }


def _order(operations: list[Operation]) -> bytes:
    return json.dumps({"operations": operations}).encode() + b"\n"
