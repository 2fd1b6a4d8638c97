from __future__ import annotations

import threading

import pytest

from collectors.nvml_worker import Worker


def test_a_job_that_hangs_is_not_waited_for_and_not_started_twice() -> None:
    go, starts = threading.Event(), []

    def job() -> str:
        starts.append(1)
        go.wait()
        return "done"

    worker = Worker("test", job)
    worker.ask()
    assert worker.answer(0.05) is None
    assert worker.busy_seconds is not None
    worker.ask()
    assert worker.answer(0.05) is None
    go.set()
    assert worker.answer(5) == "done"
    assert starts == [1]


def test_an_error_of_the_job_is_raised_where_its_answer_is_wanted() -> None:
    def job() -> None:
        raise ValueError("no")

    worker = Worker("test", job)
    for _ in range(2):
        worker.ask()
        with pytest.raises(ValueError, match="no"):
            worker.answer(5)


def test_an_ended_worker_leaves_no_thread() -> None:
    worker = Worker("test that ends", lambda: 1)
    worker.ask()
    assert worker.answer(5) == 1
    worker.end()
    for thread in threading.enumerate():
        if thread.name == "test that ends":
            thread.join(5)
            assert not thread.is_alive()
