"""What happens on the stand-in each second: traffic, the ranks' series, log lines, the hardware's state."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from ranktop.demo import loglines, series, serverinfo
from ranktop.demo.clock import DemoClock
from ranktop.demo.endpoints import Endpoints, Page
from ranktop.demo.exposition import TOKENIZER_FAMILIES, Operation, Writer, rank_labels, render
from ranktop.demo.hardware import RankUse, simulated_gpus, simulated_host, simulated_numa, simulated_placement
from ranktop.demo.launch import HOST, RANKS
from ranktop.demo.ranks import Ranks, StartError
from ranktop.demo.scenarios import Scenario
from ranktop.demo.sizes import pool_sizes
from ranktop.demo.state import resident_shmem_bytes, write_state
from ranktop.demo.traffic import Step, Traffic
from ranktop.sample.demo_state import DemoState

_DECODE_LOG_TICKS = 4


class StandIn:
    """One server. StartError when its port cannot be had."""

    def __init__(
        self, scenario: Scenario, seed: int, clock: DemoClock, directory: Path, log_fd: int, port: int
    ) -> None:
        self.sizes = pool_sizes()
        self.is_open = False
        self._scenario = scenario
        self._clock = clock
        self._directory = directory
        self._log_fd = log_fd
        self._traffic = Traffic(seed, self.sizes.tokens, scenario.profile)
        self._writer = Writer(TOKENIZER_FAMILIES, rank_labels(0))
        self._ready_at = 0.0
        self._ticks = 0
        self._step = self._traffic.step(1.0)
        self._ended: set[int] = set()
        try:
            self._endpoints = Endpoints(port)
        except OSError as error:
            raise StartError(f"port {port} on {HOST}: {error.strerror} (choose another with --port)") from None
        self._args = serverinfo.server_args(self.port, scenario.all_schedulers)

    @property
    def port(self) -> int:
        return self._endpoints.port

    def log_start(self) -> None:
        """Everything up to the host pools."""
        self._log(loglines.server_args(self._args))
        starts = [loglines.start_up(tp, self.sizes) for tp in range(RANKS)]
        for number in range(max(map(len, starts))):
            for tp, lines in enumerate(starts):
                if number < len(lines):
                    self._log(lines[number], f"TP{tp}")
        for tp in range(RANKS):
            for text in loglines.host_pools(self.sizes):
                self._log(text, f"TP{tp}")

    def open(self, ranks: Ranks) -> None:
        """All ranks are ready: constants, then listen, then say so."""
        for tp, child in ranks.live.items():
            child.tell(_order(series.constants(tp, self.sizes)))
        self._writer.apply(series.tokenizer_start())
        self._endpoints.open(self._pages())
        threading.Thread(target=self._endpoints.serve_forever, name="http", daemon=True).start()
        self._log(loglines.READY)
        self._ready_at = self._clock()
        self.is_open = True

    def tick(self, ranks: Ranks, seconds: float) -> None:
        """Let `seconds` pass, times the clock's speed. Before ready only the hardware is there."""
        live = ranks.live
        if self.is_open:
            self._step = step = self._traffic.step(seconds * self._clock.speed)
            ordered = series.every_rank(step, self.sizes)
            reported = _order(ordered + series.stats_rank(step, self.sizes))
            silent = _order(ordered)
            for tp, child in live.items():
                child.tell(reported if tp == 0 or self._scenario.all_schedulers else silent)
            self._writer.apply(series.tokenizer(step))
            self._log_batches(step)
            self._end_ranks(ranks)
        uses = [RankUse(tp, child.pid, resident_shmem_bytes(child.pid)) for tp, child in live.items()]
        write_state(self._directory / "state.json", self._state(uses))

    def _state(self, uses: list[RankUse]) -> DemoState:
        now = self._clock()
        passed = now - self._clock.origin_unix_seconds
        load = min(1.0, self._step.running / self._scenario.profile.max_running) if self.is_open else 0.0
        host = simulated_host(uses, passed)
        return DemoState(
            at_unix_seconds=now,
            scenario=self._scenario.name,
            host=host,
            numa=simulated_numa(uses, host),
            gpus=simulated_gpus(uses, self.sizes, passed, load),
            placements={use.pid: (simulated_placement(use, now),) for use in uses},
        )

    def _end_ranks(self, ranks: Ranks) -> None:
        for tp, after in self._scenario.exits.items():
            if tp not in self._ended and self._clock() - self._ready_at >= after:
                self._ended.add(tp)
                self._log(loglines.EXCEPTION, f"TP{tp}")
                ranks.live[tp].tell(json.dumps({"exit": 1}).encode() + b"\n")

    def _log_batches(self, step: Step) -> None:
        self._ticks += 1
        for batch in step.prefills:
            self._log(loglines.prefill(step, batch), "TP0")
        if step.running and self._ticks % _DECODE_LOG_TICKS == 0:
            self._log(loglines.decode(step), "TP0")

    def _log(self, message: str, tag: str = "") -> None:
        os.write(self._log_fd, loglines.line(self._clock(), message, tag).encode())

    def _pages(self) -> dict[str, Page]:
        def as_json(body: dict[str, Any]) -> tuple[str, bytes]:
            return "application/json", json.dumps(body).encode()

        return {
            "/metrics": lambda: ("text/plain; version=0.0.4; charset=utf-8", render(str(self._directory / "metrics"))),
            "/server_info": lambda: as_json(serverinfo.server_info(self._args, self.sizes, self._step)),
            "/model_info": lambda: as_json(serverinfo.model_info()),
            "/v1/loads": lambda: as_json(serverinfo.loads(self.sizes, self._step, self._clock())),
        }


def _order(operations: list[Operation]) -> bytes:
    return json.dumps({"operations": operations}).encode() + b"\n"
