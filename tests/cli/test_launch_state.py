"""The state file of launches: private, whole or absent, and never a reason to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.cli.launch_state import MAX_BYTES, load_launches, save_launches, state_path
from ranktop.reconcile.launches import Launch

LAUNCHES = (
    Launch("a:1", 10.0, "0.5.17", {"tp_size": 8, "numa_node": [0, 1]}, host_hit=0.25),
    Launch("a:1", 20.0, "0.5.18", {"tp_size": 8}),
)


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "launches.json"
    save_launches(path, LAUNCHES)
    save_launches(path, LAUNCHES)
    assert load_launches(path) == LAUNCHES
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["launches.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b'[{"server": 5}]', b'{"launches": []}', b"[" + b" " * MAX_BYTES + b"]"]
)
def test_a_file_that_is_not_ours_gives_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "launches.json"
    path.write_bytes(content)
    assert load_launches(path) == ()


def test_a_missing_file_gives_none(tmp_path: Path) -> None:
    assert load_launches(tmp_path / "launches.json") == ()
    assert load_launches(tmp_path) == ()


def test_servers_that_were_started_last_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "launches.json"
    save_launches(path, [Launch(f"a:{number}", float(number)) for number in range(100)])
    kept = load_launches(path)
    assert len(kept) == 64
    assert kept[-1].server == "a:99"


def test_where_the_file_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_path() == tmp_path / "ranktop" / "launches.json"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert state_path() == Path("/home/someone/.local/state/ranktop/launches.json")
