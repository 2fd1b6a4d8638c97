"""A child process of the stand-in's main process: started by exec, told what to do through its standard input."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

_MOST_PENDING_BYTES = 1 << 16


class Child:
    """One `python -m MODULE`. It ends when its standard input closes."""

    def __init__(self, name: str, module: str, arguments: Sequence[str], pass_fds: tuple[int, ...] = ()) -> None:
        self.name = name
        self.ready = False
        self._pending = b""
        self._heard = b""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=pass_fds,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self.stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self.stdout.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it lives. Asking also reaps it."""
        return self._process.poll()

    def tell(self, line: bytes) -> None:
        """Queue one line. A child that does not read (stopped, stuck) misses what does not fit, whole lines only."""
        if len(self._pending) + len(line) <= _MOST_PENDING_BYTES:
            self._pending += line
        # BrokenPipeError: it has ended, and `exit_code` will say so.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            self._pending = self._pending[os.write(self._stdin.fileno(), self._pending) :]

    def hear(self) -> Iterator[dict[str, Any] | None]:
        """The JSON objects it has said since last asked, then None if it will say no more."""
        while chunk := self._read():
            self._heard += chunk
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            yield json.loads(line)
        if chunk == b"":
            yield None

    def _read(self) -> bytes | None:
        try:
            return os.read(self.stdout.fileno(), 65536)
        except BlockingIOError:
            return None

    def hang_up(self) -> None:
        """Let it end."""
        self._stdin.close()

    def wait(self, seconds: float) -> int:
        """Its exit code; it is killed when it has not ended after `seconds`."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
