"""Every command that writes a file: nothing is replaced unasked, no link followed, nobody else can read it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ranktop.cli import main
from ranktop.reconcile import Reconciler
from ranktop.recording.writer import Writer
from support.samples import LAUNCH, healthy

Write = Callable[[Path, bool], int]
"""Writes to a path, with --overwrite or without; the exit code."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "a.rtop"
    writer, reconciler = Writer(str(path), {"host": "node-a"}), Reconciler()
    for second in range(70):
        sample = healthy(float(second))
        writer.append(sample, reconciler.update(sample))
    writer.close()
    return path


@pytest.fixture(params=["export", "report", "cut", "plan", "record"])
def write(request: pytest.FixtureRequest, recording: Path) -> Write:
    commands = {
        "export": ["export", str(recording), "-o"],
        "report": ["report", str(recording), "-o"],
        "cut": ["cut", str(recording), "-o"],
        "plan": ["plan", "--manifest"],
        "record": ["record", "--duration", "0.2", "--pid", "1", "-o"],
    }
    command = commands[request.param]
    rest = ["--", *LAUNCH.split()] if request.param == "plan" else []

    def run(path: Path, overwrite: bool = False) -> int:
        return main.run([*command, str(path), *(["--overwrite"] if overwrite else []), *rest])

    return run


def test_a_new_file_is_private(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "made"
    before = os.umask(0)
    try:
        assert write(path, False) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_size > 0


def test_a_file_is_replaced_only_when_asked(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "there"
    path.write_text("mine " * 100_000)
    assert write(path, False) == 2
    assert path.read_text() == "mine " * 100_000
    said = capsys.readouterr().err
    assert "is there already" in said
    assert said.count("\n") == 1
    assert write(path, True) == 0
    assert b"mine mine" not in path.read_bytes()


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_a_link_is_never_followed(write: Write, tmp_path: Path, overwrite: bool, exists: bool) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    if exists:
        target.write_text("mine")
    link.symlink_to(target)
    assert write(link, overwrite) == 2
    assert link.is_symlink()
    assert (target.read_text() == "mine") if exists else not target.exists()


def test_a_pipe_is_neither_waited_for_nor_written(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert write(tmp_path / "pipe", False) == 2
    assert write(tmp_path / "pipe", True) == 2


def test_a_folder_that_is_not_there_is_one_line(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert write(tmp_path / "nowhere" / "made", False) == 2
    said = capsys.readouterr().err
    assert said.startswith("ranktop: ")
    assert said.count("\n") == 1
