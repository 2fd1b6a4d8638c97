"""What a shell user leans on beside the commands: completion in real shells, `--version`, the manual page."""

from __future__ import annotations

import os
import shutil
import subprocess
from types import ModuleType

import pytest

from conftest import program
from ranktop.cli import main
from ranktop.cli.main import COMMANDS
from support.command import RANKTOP, ranktop

TYPED = [("pref", "preflight"), ("check --js", "--json"), ("rec", "record"), ("config pr", "print"), ("--ur", "--url")]


def _shell(shell: str, program: str, **environment: str) -> str:
    done = subprocess.run(
        [shell, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | environment | {"PATH": f"{RANKTOP.parent}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_bash_completes(typed: str, offered: str) -> None:
    words = ["ranktop", *typed.split()]
    program = (
        'eval "$(_RANKTOP_COMPLETE=bash_source ranktop)"; '
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        '_ranktop_completion ranktop; echo "${COMPREPLY[@]}"'
    )
    assert offered in _shell("bash", program).split()


@pytest.mark.parametrize(("typed", "offered"), TYPED)
def test_fish_is_answered(typed: str, offered: str) -> None:
    """What fish's function calls; fish itself is not needed to ask."""
    told = _shell(
        "sh",
        "ranktop",
        _RANKTOP_COMPLETE="fish_complete",
        COMP_WORDS=f"ranktop {typed}",
        COMP_CWORD=typed.split()[-1],
    )
    assert f"plain,{offered}" in [line.partition("\t")[0] for line in told.splitlines()]


@pytest.mark.tools("zsh")
def test_zsh_takes_the_function() -> None:
    program = (
        "autoload -U compinit; compinit -u -D; "
        'eval "$(_RANKTOP_COMPLETE=zsh_source ranktop)"; print -r -- $_comps[ranktop]'
    )
    assert _shell("zsh", program).strip() == "_ranktop_completion"
    told = _shell("zsh", "ranktop", _RANKTOP_COMPLETE="zsh_complete", COMP_WORDS="ranktop pref", COMP_CWORD="1")
    assert "preflight" in told.splitlines()


def test_the_source_for_fish_names_its_function() -> None:
    told = _shell("sh", "ranktop", _RANKTOP_COMPLETE="fish_source")
    assert "complete --no-files --command ranktop" in told
    if shutil.which("fish"):
        assert "preflight" in _shell("fish", f"{told}\ncomplete --do-complete 'ranktop pref'")


def test_version_names_the_exact_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("ranktop, version 0.")
    assert "0.5.16" in said
    assert "0.5.23" in said


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_has_help(command: str) -> None:
    done = ranktop(command, "-h")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: ranktop {command}")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return program("man/make_man.py")


def test_the_manual_page_is_current(maker: ModuleType) -> None:
    assert maker.PAGE.read_text(encoding="utf-8") == maker.page(), "run make man"


@pytest.mark.tools("groff")
def test_the_manual_page_is_drawn_without_a_complaint(maker: ModuleType) -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-cbu"], input=maker.page(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for command in COMMANDS:
        assert f"ranktop {command}" in done.stdout
    for words in ("--hicache-size 120", "RANKTOP_API_KEY", "A breach, or a gate"):
        assert words in done.stdout.replace("‐", "-").replace("−", "-")
