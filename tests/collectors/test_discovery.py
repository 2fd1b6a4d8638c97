from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from collectors.discovery import NewPids, Watchlist


def folders(root: Path, *pids: int) -> None:
    for pid in pids:
        (root / str(pid)).mkdir(exist_ok=True)


def test_this_machine_new_pids_are_told_once() -> None:
    new = NewPids("/proc")
    first = new.next()
    assert str(os.getpid()) in first
    new.next()
    process = subprocess.Popen(["sleep", "60"])
    try:
        assert str(process.pid) in new.next()
        assert str(process.pid) not in new.next() + new.next()
    finally:
        process.kill()
        process.wait()


def test_after_the_first_look_proc_is_never_listed_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    new = NewPids("/proc")
    new.next()
    new.next()
    monkeypatch.setattr(os, "listdir", lambda path: pytest.fail("listed as a whole"))
    process = subprocess.Popen(["sleep", "60"])
    try:
        found = new.next()
    finally:
        process.kill()
        process.wait()
    assert str(process.pid) in found
    assert "1" not in found


def test_pids_handed_out_before_a_wrap_are_not_new_again(monkeypatch: pytest.MonkeyPatch) -> None:
    new = NewPids("/proc")
    known = new.next()
    monkeypatch.setattr(new, "_cursor", lambda: 2)
    new._cursors = (1, 1)
    assert set(new.next()) <= {"2"}
    assert len(known) > 2


def test_a_tree_that_is_no_procfs_is_listed_as_a_whole(tmp_path: Path) -> None:
    folders(tmp_path, 30, 4)
    (tmp_path / "meminfo").touch()
    new = NewPids(str(tmp_path))
    assert new.next() == ["4", "30"]
    folders(tmp_path, 5)
    assert new.next() == ["5"]
    (tmp_path / "5").rmdir()
    new.next()
    folders(tmp_path, 5)
    assert new.next() == ["5"]


def test_a_pid_that_is_told_gone_is_new_when_it_comes_back(tmp_path: Path) -> None:
    folders(tmp_path, 5)
    new = NewPids(str(tmp_path))
    assert new.next() == ["5"]
    assert new.next() == []
    new.forget("5")
    assert new.next() == ["5"]


def test_after_the_pids_wrapped_reused_ones_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    new = NewPids("/proc")
    new.next()
    own = os.getpid()
    monkeypatch.setattr(new, "_cursor", lambda: own)
    new._cursors = (own + 1, own + 1)
    found = new.next()
    assert str(own) in found
    assert "1" in found


def test_one_that_was_missed_is_found_by_the_audit() -> None:
    new = NewPids("/proc")
    new.next()
    new._known.discard("1")
    assert sum("1" in new.next() for _ in range(16)) == 1


def test_a_listing_that_is_not_in_order_of_pids_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders(tmp_path, 5, 700)
    new = NewPids(str(tmp_path))
    last_pids = iter([700, 700, 701, 702])
    monkeypatch.setattr(new, "_cursor", lambda: next(last_pids, 703))
    new.next()
    new.next()
    folders(tmp_path, 701)
    assert new.next() == ["701"]


def test_a_listing_without_the_readers_own_pid_space_is_whole(tmp_path: Path) -> None:
    folders(tmp_path, 1)
    (tmp_path / "self").symlink_to("1")
    (tmp_path / "loadavg").write_text("0 0 0 1/2 500\n")
    new = NewPids(str(tmp_path))
    assert new.next() == ["1"]
    folders(tmp_path, 2)
    assert new.next() == ["2"]


def test_nobody_is_looked_at_twice_and_then_by_the_sweep() -> None:
    watchlist = Watchlist()
    watchlist.watch("7", eager=False)
    assert (watchlist.due(), watchlist.looks("7")) == (["7"], 1)
    watchlist.watch("7", eager=False)
    assert (watchlist.due(), watchlist.looks("7")) == (["7"], 0)
    for pid in range(100, 200):
        watchlist.watch(str(pid), eager=False)
        watchlist.watch(str(pid), eager=False)
    swept = [name for _ in range(11) for name in watchlist.due()]
    assert len(watchlist.due()) == 10
    assert len(set(swept)) == 101


def test_a_coming_rank_is_looked_at_every_time_then_less_often() -> None:
    watchlist = Watchlist()
    looks = 0
    for _ in range(300):
        if not looks or watchlist.due():
            watchlist.watch("7", eager=True)
            looks += 1
    assert 120 <= looks <= 140
    watchlist.forget("7")
    assert watchlist.due() == []


def test_an_offset_in_proc_is_a_pid() -> None:
    new, own = NewPids("/proc"), os.getpid()
    assert new._listed(own - 1, own) == [own]
    assert own not in (new._listed(own, own + 1000) or [])
