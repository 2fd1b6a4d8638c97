"""Blocking questions from the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

_Answer = TypeVar("_Answer")


async def in_thread(question: Callable[[], _Answer]) -> _Answer:
    """The answer of a call that may block. Its thread is a daemon: leaving the app does not wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Answer] = loop.create_future()

    def settle(answer: _Answer | None, problem: Exception | None) -> None:
        if not future.done():
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(answer)  # pyright: ignore[reportArgumentType]

    def run() -> None:
        answer, problem = None, None
        try:
            answer = question()
        except Exception as raised:
            # It belongs to whoever awaits the answer, and is raised there.
            problem = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, answer, problem)

    threading.Thread(target=run, name="ranktop question", daemon=True).start()
    return await future
