"""The case log as a table: for every report with an input, what `inspect` must find in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import cases_gpu, cases_memory, cases_metrics, cases_pd, cases_tiers
from support.inspect_case import Case, judged

CASES = (*cases_memory.CASES, *cases_tiers.CASES, *cases_pd.CASES, *cases_metrics.CASES, *cases_gpu.CASES)
SHOWN = [case for case in CASES if not case.not_shown]

WITH_INPUT = {
    *(1, 2, 3, 6, 7, 9, 11, 12, 14, 16, 17, 19, 20, 21, 23, 26, 28, 29, 31, 32, 34, 36, 38, 39, 41, 42, 44, 47, 48),
    *(50, 52, 53, 56, 57, 59, 61, 62, 65, 67, 68, 69, 71, 74, 76, 77, 78, 80, 82, 83, 85, 86, 88, 89),
}
"""The reports that came with an input."""


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.id)
def test_the_case_is_told(case: Case, tmp_path: Path) -> None:
    found = judged(case, tmp_path)
    told = {(finding.code, finding.severity): finding for finding in found.verdict.findings}
    for wanted in case.codes:
        finding = told.get((wanted.code, wanted.severity))
        assert finding is not None, f"{wanted.code} {wanted.severity} is not among {sorted(told)}"
        assert wanted.ranks is None or finding.ranks == wanted.ranks
        assert {name: finding.evidence.get(name) for name in wanted.evidence} == dict(wanted.evidence)
    assert not {code for code, _ in told} & set(case.never)
    for seen in case.lines:
        holders = (
            [rank for rank in found.verdict.ranks if rank.rank == seen.rank] if seen.rank else [found.verdict.node]
        )
        assert holders, f"no rank {seen.rank} among {[rank.rank for rank in found.verdict.ranks]}"
        line = holders[0].line(seen.line)
        assert (line.seen, line.status) == (seen.seen, seen.status), line
        assert seen.planned is None or line.planned == seen.planned
    assert case.holds is None or case.holds(found)


def test_every_case_with_an_input_is_in_the_table() -> None:
    assert {case.number for case in CASES} == WITH_INPUT


def test_a_case_that_is_not_shown_says_why() -> None:
    assert all(case.codes or case.lines or case.holds or case.never or case.not_shown for case in CASES)


@pytest.mark.shared
def test_the_list_of_inputs_is_that_of_the_log(shared: Path) -> None:
    inputs = {int(path.name.split("-")[0]) for path in (shared / "cases" / "inputs").iterdir()}
    assert inputs == WITH_INPUT
