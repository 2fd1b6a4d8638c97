"""A thread that does one job on request and may hang in it without anyone waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Worker(Generic[T]):
    """Runs `job` in its own daemon thread, once for every `ask` that finds it idle."""

    def __init__(self, name: str, job: Callable[[], T]) -> None:
        self._job = job
        self._asked = threading.Event()
        self._answered = threading.Event()
        self._answered.set()
        self._ends = False
        self._asked_at = 0.0
        self._value: T | None = None
        self._error: Exception | None = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def busy_seconds(self) -> float | None:
        """How long the job under way has taken, None when idle."""
        return None if self._answered.is_set() else time.monotonic() - self._asked_at

    def ask(self) -> None:
        """Start the job unless it is under way."""
        if self._answered.is_set():
            self._value = self._error = None
            self._asked_at = time.monotonic()
            self._answered.clear()
            self._asked.set()

    def answer(self, timeout_seconds: float) -> T | None:
        """The result of the job last asked for, None when it has not come in time. Raises what the job raised."""
        if not self._answered.wait(max(0.0, timeout_seconds)):
            return None
        if self._error is not None:
            raise self._error
        return self._value

    def end(self) -> None:
        """Let the thread go, after the job under way if there is one."""
        self._ends = True
        self._asked.set()

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            if self._ends:
                return
            try:
                self._value = self._job()
            except Exception as error:
                self._error = error
            self._answered.set()
