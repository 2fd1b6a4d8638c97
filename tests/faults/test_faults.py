"""Every fault of the list: the user sees one clear line, everything else goes on, and what was broken recovers."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.fault import Fault, Stage
from faults.listed import BEGIN, END, FAULTS, table


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.subject}: {fault.what}")
def test_fault(fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.trial(Stage(tmp_path, monkeypatch), fault.shows)


def test_the_document_has_this_list() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == table()
