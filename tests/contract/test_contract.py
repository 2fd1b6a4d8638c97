"""SGLang still is what ranktop believes it is: the wheels of two pinned releases and of the newest, read as text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ranktop.reconcile.families import FAMILIES
from ranktop.reconcile.series_by_version import has_family
from tests.contract.check import TABLE, problems, write_row
from tests.contract.wheel import NoRegistryError, Wheel, fetch, read, rendered

pytestmark = [pytest.mark.registry, pytest.mark.xdist_group("contract")]


def wheel_of(version: str | None) -> Wheel:
    try:
        return read(fetch(version))
    except NoRegistryError as error:
        pytest.skip(f"no package registry answers: {error}")


@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_a_pinned_release_has_what_is_relied_on(version: str, tmp_path: Path) -> None:
    wheel = wheel_of(version)
    assert problems(wheel) == []
    copy = tmp_path / "table.json"
    shutil.copy(TABLE, copy)
    assert not write_row(wheel, copy), "the version table does not say what the wheel says"


def test_the_newest_release_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    wheel = wheel_of(None)
    assert len(wheel.metrics) > 50, "the wheel's metrics could not be read at all"
    with capsys.disabled():
        for line in problems(wheel):
            print(f"\nsglang {wheel.version} (newest): {line}", end="")


def test_a_release_that_lost_something_is_found() -> None:
    bare = Wheel("0.5.18", {}, {"tp_size": 2}, ())
    found = problems(bare)
    assert "metric sglang:num_running_reqs is gone" in found
    assert "server argument tp_size defaults to 2, relied on 1" in found
    assert "server argument hicache_size is gone" in found
    assert "no log line gives host_pool" in found
    assert "no rank tag ' ATTN_CP'" in found


def test_a_new_release_gets_its_row(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    shutil.copy(TABLE, table)
    names = [name for name in FAMILIES if has_family(name, "0.5.23")]
    metrics = {name: None for name in names if name != "sglang:cache_hit_rate"}
    assert write_row(Wheel("0.5.24", metrics, {}, ()), table)  # type: ignore[arg-type]
    content = json.loads(table.read_text())
    assert content["versions"][-1] == "0.5.24"
    assert "0.5.24" in content["families"]["sglang:num_running_reqs"]
    assert "0.5.24" not in content["families"]["sglang:cache_hit_rate"]


def test_templates_are_rendered() -> None:
    lines = list(rendered("a %d b %.2f c {x.rid!r} d {y:.1f} e {z}"))
    assert lines == ["a 7 b 1.25 c 'abc' d 1.25 e 7", "a 7 b 1.25 c 'abc' d 1.25 e abc"]
