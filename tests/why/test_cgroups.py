"""Kills that only a cgroup's counters still tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ranktop.sample import NoData
from ranktop.why.cgroups import remains
from why.node import CONTAINER, GIB, POD, cgroup, claim, events, judged, nowhere, only_death


def test_case_11_the_pod_outlives_its_container(tmp_path: Path) -> None:
    """Limit 400 GiB, peak 399 GiB, one kill, no container left and no kernel log."""
    files = {"memory_max": 400 * GIB, "memory_peak": 399 * GIB, "memory_current": 0}
    cgroup(tmp_path, POD, **files, memory_events=events(1, 1), memory_events_local=events(1, 0), memory_oom_group=1)
    death = only_death(judged(replace(nowhere(tmp_path), sys_root=str(tmp_path))))
    assert death.title == "1 kill for memory in pod 0a1b2c3d-0000-4000-8000-0123456789ab, since it was made"
    assert death.at_unix_seconds is None
    assert claim(death, "victim").certainty == "unknown"
    assert claim(death, "constraint").certainty == "proven"
    limit = claim(death, "limit")
    assert limit.evidence == {"limit_bytes": 400 * GIB, "peak_bytes": 399 * GIB, "current_bytes": 0}
    assert claim(death, "group").certainty == "proven"


def test_a_kill_is_told_of_the_innermost_cgroup_that_counted_it(tmp_path: Path) -> None:
    cgroup(tmp_path, "kubepods.slice", memory_events=events(0, 3))
    cgroup(tmp_path, POD, memory_events=events(1, 3), memory_max=400 * GIB)
    cgroup(tmp_path, CONTAINER, memory_events=events(0, 2))
    found = {one.path: one.oom_kill_count for one in remains(str(tmp_path), str(tmp_path / "pods"))}
    # One of the pod's three kills was of a container that is gone.
    assert found == {f"/{POD}": 3, f"/{CONTAINER}": 2}


def test_the_limit_is_that_of_the_nearest_ancestor_that_sets_the_least(tmp_path: Path) -> None:
    cgroup(tmp_path, POD, memory_events=events(1, 1), memory_max=400 * GIB)
    cgroup(tmp_path, CONTAINER, memory_events=events(0, 1), memory_max="max")
    (found,) = remains(str(tmp_path), str(tmp_path / "pods"))
    assert (found.path, found.limit_bytes, found.limit_path) == (f"/{CONTAINER}", 400 * GIB, f"/{POD}")


def test_without_a_limit_above_it_the_host_is_the_likely_constraint(tmp_path: Path) -> None:
    cgroup(tmp_path, "system.slice/sglang.service", memory_events=events(0, 1), memory_max="max")
    death = only_death(judged(replace(nowhere(tmp_path), sys_root=str(tmp_path))))
    assert claim(death, "constraint").certainty == "likely"
    assert "no limit above it" in claim(death, "constraint").text


def test_limit_events_without_a_kill_are_no_death(tmp_path: Path) -> None:
    cgroup(tmp_path, POD, memory_events=events(0, 0), memory_max=400 * GIB)
    assert judged(replace(nowhere(tmp_path), sys_root=str(tmp_path))).deaths == ()


def test_version_1(tmp_path: Path) -> None:
    folder = tmp_path / "fs" / "cgroup" / "memory" / "docker" / ("cd" * 32)
    folder.mkdir(parents=True)
    (folder / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
    (folder / "memory.limit_in_bytes").write_text(f"{400 * GIB}\n")
    (folder / "memory.max_usage_in_bytes").write_text(f"{400 * GIB}\n")
    (found,) = remains(str(tmp_path), str(tmp_path / "pods"))
    assert (found.oom_kill_count, found.limit_bytes, found.peak_bytes) == (4, 400 * GIB, 400 * GIB)


def test_no_cgroup_at_all(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="is not here"):
        remains(str(tmp_path), str(tmp_path / "pods"))


def test_names_of_the_pod_come_from_its_folder_of_logs(tmp_path: Path) -> None:
    cgroup(tmp_path / "sys", POD, memory_events=events(1, 1), memory_max=400 * GIB)
    (tmp_path / "pods" / "prod_glm-0_0a1b2c3d-0000-4000-8000-0123456789ab").mkdir(parents=True)
    (found,) = remains(str(tmp_path / "sys"), str(tmp_path / "pods"))
    assert found.pod == "prod/glm-0"
