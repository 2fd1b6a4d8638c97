"""Every scenario through the command: what it states opens, and nothing above info beside it."""

from __future__ import annotations

import re
import select
import subprocess
import time
from collections.abc import Iterator

import pytest

from ranktop.demo.scenarios import SCENARIOS, Scenario
from ranktop.finding import SEVERITIES
from support.command import RANKTOP

pytestmark = pytest.mark.e2e

_REAL_SECONDS = 6.0
"""In so many real seconds from ready everything that a scenario states can be known."""
_MOST_SPEED = 120.0
_PATIENCE_SECONDS = 60.0
_BESIDE_SECONDS = 2.5
"""For so long after the last of them nothing else may open."""

_OPENED = re.compile(r"demo: (info|warn|breach|critical) (\S+) ")


def _two_at_a_time() -> Iterator[object]:
    for number, scenario in enumerate(SCENARIOS.values()):
        group = pytest.mark.xdist_group(f"demo{number % 2}")
        yield pytest.param(scenario, id=scenario.name, marks=group)


def _follow(scenario: Scenario) -> dict[str, str]:
    """The worst severity of every code that opened, until all that are stated have, and a little longer."""
    speed = min(_MOST_SPEED, max(1.0, scenario.shows_after_seconds / _REAL_SECONDS))
    command = [str(RANKTOP), "demo", scenario.name, "--headless", "300", "--speed", f"{speed:g}"]
    opened: dict[str, str] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ends = time.monotonic() + _PATIENCE_SECONDS
        complete = False
        try:
            while (left := ends - time.monotonic()) > 0:
                if not complete and _is_complete(opened, scenario):
                    complete, ends = True, time.monotonic() + _BESIDE_SECONDS
                elif select.select([process.stdout], [], [], min(left, 0.5))[0]:
                    line = process.stdout.readline()
                    assert line, process.stderr and process.stderr.read()
                    if match := _OPENED.match(line):
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
