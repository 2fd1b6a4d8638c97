"""Starts a stand-in node and ends it. The node is a process tree of its own, in a session of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ranktop.clock import NodeClock
from ranktop.demo.launch import RANKS
from ranktop.demo.scenarios import find_scenario, why_no_scenario

PREFIX = "ranktop-demo-"
_START_SECONDS = 30.0
_STOP_SECONDS = 5.0


class DemoError(Exception):
    """The node did not start: one line that says what was tried and what came back."""


class DemoNode:
    """A stand-in node while the `with` block runs. DemoError when it cannot start.

    `speed` scales traffic and `clock`, nothing else; a `clock` that is given has its own. `url` refuses connections
    until the node is ready, as SGLang's does. It ends with the block, and also when this process ends in any other way.
    """

    url: str
    pid: int
    orphan_pid: int | None
    """A rank of an earlier server, known once this one is ready."""

    def __init__(
        self,
        scenario: str = "healthy",
        port: int | None = None,
        seed: int = 7,
        speed: float = 1.0,
        *,
        clock: NodeClock | None = None,
    ) -> None:
        found = find_scenario(scenario)
        if found is None:
            raise DemoError(why_no_scenario(scenario))
        self.scenario = found
        self.clock = clock or NodeClock(time.time(), speed)
        self._port = port or 0
        self._seed = seed
        self._heard = b""
        self._ready = False
        self.orphan_pid = None

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.log_path = self.directory / "node.log"
        self.state_path = self.directory / "state.json"
        with contextlib.ExitStack() as undo:
            undo.callback(shutil.rmtree, self.directory, ignore_errors=True)
            self._log = os.open(self.log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            undo.callback(os.close, self._log)
            try:
                self._process = self._start()
            except OSError as problem:
                raise DemoError(f"{sys.executable} cannot be started: {problem.strerror}") from problem
            undo.callback(_end, self._process)
            self.pid = self._process.pid
            self.url = self._next_message(time.monotonic() + _START_SECONDS)["url"]
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait_ready(self, timeout_seconds: float | None = None) -> None:
        """Return when the node has started: with its ready line in the log, unless the scenario never gets there.

        DemoError when it fails first or takes longer.
        """
        if not self._ready:
            most = timeout_seconds or _START_SECONDS * self.scenario.launch.gpus / RANKS
            self.orphan_pid = self._next_message(time.monotonic() + most)["orphan"]
            self._ready = True

    def alive(self) -> bool:
        """Whether the main process lives."""
        return self._process.poll() is None

    def close(self) -> None:
        """End all of its processes and remove its directory. Can be called twice."""
        self._undo.close()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = os.environ | {"RANKTOP_DEMO_STATE": str(self.state_path), "SPT_NOENV": "1"}
        options = {
            # Room for the longest title that setproctitle may have to write over these arguments.
            "--title": self.scenario.launch.line(65535, 65535),
            "--scenario": self.scenario.name,
            "--directory": self.directory,
            "--port": self._port,
            "--seed": self._seed,
            "--speed": self.clock.speed,
            "--origin": self.clock.origin_unix_seconds,
        }
        arguments = [str(part) for option in options.items() for part in option]
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "ranktop.demo.node", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )

    def _next_message(self, deadline: float) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        while b"\n" not in self._heard:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                raise DemoError("the stand-in node was not ready in time (is this machine very busy?)")
            chunk = os.read(stdout.fileno(), 4096)
            if not chunk:
                raise DemoError(self._why_ended())
            self._heard += chunk
        line, self._heard = self._heard.split(b"\n", 1)
        message = json.loads(line)
        if "failed" in message:
            raise DemoError(f"the stand-in node did not start: {message['failed']}")
        return message

    def _why_ended(self) -> str:
        code = self._process.wait()
        last = os.pread(self._log, 1 << 20, 0).decode(errors="replace").strip().rpartition("\n")[2]
        return f"the stand-in node ended with code {code} before it was ready{': ' if last else ''}{last}"


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
