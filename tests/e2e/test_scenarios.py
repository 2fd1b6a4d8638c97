"""Every scenario through the command: what it states opens, and nothing above info beside it."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ranktop.demo.scenarios import SCENARIOS, Scenario
from ranktop.finding import SEVERITIES
from support.command import RANKTOP, ranktop

pytestmark = pytest.mark.e2e

_REAL_SECONDS = 6.0
"""In so many real seconds from ready everything that a scenario states can be known."""
_MOST_SPEED = 120.0
_PATIENCE_SECONDS = 100.0
_BESIDE_SECONDS = 2.5
"""For so long after the last of them nothing else may open."""

_OPENED = re.compile(r"demo: (info|warn|breach|critical) (\S+) ")


def _two_at_a_time() -> Iterator[Any]:
    for number, scenario in enumerate(SCENARIOS.values()):
        group = pytest.mark.xdist_group(f"demo{number % 2}")
        yield pytest.param(scenario, id=scenario.name, marks=group)


def _follow(scenario: Scenario) -> dict[str, str]:
    """The worst severity of every code that opened, until all that are stated have, and a little longer."""
    speed = min(_MOST_SPEED, max(1.0, scenario.shows_after_seconds / _REAL_SECONDS))
    command = [str(RANKTOP), "demo", scenario.name, "--headless", "300", "--speed", f"{speed:g}"]
    opened: dict[str, str] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        pipe, unread = process.stdout.fileno(), b""
        ends, complete = time.monotonic() + _PATIENCE_SECONDS, False
        try:
            while (left := ends - time.monotonic()) > 0:
                if not complete and _is_complete(opened, scenario):
                    complete, ends = True, time.monotonic() + _BESIDE_SECONDS
                elif select.select([pipe], [], [], min(left, 0.5))[0]:
                    chunk = os.read(pipe, 1 << 16)
                    assert chunk, process.stderr.read().decode()
                    *lines, unread = (unread + chunk).split(b"\n")
                    for match in filter(None, map(_OPENED.match, (line.decode() for line in lines))):
                        opened[match[2]] = max(match[1], opened.get(match[2], "info"), key=SEVERITIES.index)
        finally:
            process.terminate()
    return opened


def _is_complete(opened: dict[str, str], scenario: Scenario) -> bool:
    return set(scenario.findings) <= opened.keys() and scenario.worst in (None, *opened.values())


@pytest.mark.parametrize("scenario", _two_at_a_time())
def test_a_scenario_shows_what_it_states_and_nothing_else(scenario: Scenario) -> None:
    opened = _follow(scenario)
    assert set(scenario.findings) <= opened.keys()
    above_info = {code: severity for code, severity in opened.items() if severity != "info"}
    assert set(above_info) <= {*scenario.findings, *scenario.may_follow}
    assert max(above_info.values(), key=SEVERITIES.index, default=None) == scenario.worst


@pytest.mark.xdist_group("demo0")
def test_a_healthy_hour_gives_nothing_above_info() -> None:
    done = ranktop("demo", "healthy", "--headless", "30", "--speed", "120", timeout_seconds=120)
    opened = [match[0] for match in map(_OPENED.match, done.stdout.splitlines()) if match]
    assert [line for line in opened if not line.startswith("demo: info ")] == []
    assert "demo: ready" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(("scenario", "code"), [("healthy@0.5.23", 0), ("l2-phantom@0.5.23", 0), ("cp1-fallback", 1)])
@pytest.mark.xdist_group("demo1")
def test_the_exit_code_is_of_the_worst_that_opened(scenario: str, code: int) -> None:
    assert ranktop("demo", scenario, "--headless", "12", "--speed", "10", timeout_seconds=120).returncode == code
