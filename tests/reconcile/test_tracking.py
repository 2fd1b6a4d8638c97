"""Since when, and when it closes."""

from __future__ import annotations

from ranktop.finding import Finding
from ranktop.reconcile.tracking import Key, Open, track

FINDING = Finding("HOST-SWAP", "warn", "swapping")
OTHER = Finding("HOST-SWAP", "breach", "swapping more")


def run(*updates: list[Finding], close_after: int = 3) -> list[dict[Key, Open]]:
    states: list[dict[Key, Open]] = []
    known: dict[Key, Open] = {}
    for number, findings in enumerate(updates):
        known = track(known, float(number), findings, close_after)
        states.append(known)
    return states


def since(state: dict[Key, Open]) -> str | None:
    (known,) = state.values()
    return known.finding.since


def test_since_is_the_first_time_even_when_it_worsens() -> None:
    first, second = run([FINDING], [OTHER])
    assert since(first) == since(second) == "1970-01-01T00:00:00.000Z"
    (known,) = second.values()
    assert known.finding.severity == "breach"


def test_what_is_known_to_have_happened_before_is_since_then() -> None:
    earlier = Finding("HOST-OOM-KILL", "critical", "killed", since="1969-12-31T23:59:00.000Z")
    later = Finding("HOST-OOM-KILL", "critical", "another was killed", since="1970-01-01T00:00:01.000Z")
    first, second = run([earlier], [later])
    assert since(first) == since(second) == earlier.since


def test_it_closes_after_three_clear_updates_and_not_before() -> None:
    states = run([FINDING], [], [], [])
    assert [len(state) for state in states] == [1, 1, 1, 0]


def test_a_flicker_is_one_finding() -> None:
    states = run([FINDING], [], [FINDING], [], [])
    assert since(states[-1]) == "1970-01-01T00:00:00.000Z"


def test_once_closed_it_opens_anew() -> None:
    states = run([FINDING], [], [], [], [FINDING])
    assert since(states[-1]) == "1970-01-01T00:00:04.000Z"
