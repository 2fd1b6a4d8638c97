"""Every command that README and docs show is one that this ranktop has, with options that it takes; many are run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from ranktop.cli import main
from ranktop.cli.main import COMMANDS, cli
from ranktop.reconcile.catalogue import entries

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")

RUN = frozenset({"plan", "explain", "config"})
"""End at once, need no server, and change nothing."""


def _lines() -> Iterator[tuple[str, str]]:
    """(page, command line) of code blocks and of inline code that begins with `ranktop` or `make`."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = [block.replace("\\\n", " ") for block in _BLOCK.findall(text)]
        rest = _BLOCK.sub("", text)
        for line in [*"\n".join(blocks).splitlines(), *_INLINE.findall(rest)]:
            found = re.search(r"(?:^|\s|\$\()(?:[A-Z_]+=\S+ )*(?:sudo )?((?:ranktop|make)(?: .*|$))", line)
            if found is not None and (line in "\n".join(blocks) or line.lstrip().startswith(("ranktop", "make"))):
                yield page.name, found[1]


LINES = sorted(set(_lines()))


def _words(line: str) -> list[str]:
    """The words of a shell line, up to a pipe, a comment or `&`."""
    words = shlex.split(line, comments=True)
    ends = [index for index, word in enumerate(words) if word in ("&", "|", "&&", ";")]
    return [word for word in words[: ends[0] if ends else None] if word not in ("...", "…")]


def _is_command(words: list[str]) -> bool:
    return len(words) > 1 and words[0] == "ranktop" and words[1] in COMMANDS


@pytest.mark.parametrize(("page", "line"), LINES)
def test_what_is_shown_exists(page: str, line: str) -> None:
    words = _words(line)
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets)
        return
    if len(words) > 1 and words[1].startswith("--"):
        words = words if words[1] == "--version" else ["ranktop", "watch", *words[1:]]
    if len(words) == 1 or words[1] == "--version":
        return
    assert words[1] in COMMANDS, f"{page}: {line}"
    _check_options(words)


def _check_options(words: list[str]) -> None:
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help", "-h"}
    before = words[2 : words.index("--")] if "--" in words else words[2:]
    if words[1] != "serve":
        assert {word.partition("=")[0] for word in before if re.match(r"--?[a-z]", word)} <= known


@pytest.mark.parametrize(
    "line", sorted({line for _, line in LINES if _is_command(words := _words(line)) and words[1] in RUN})
)
def test_what_ends_at_once_is_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[Any]
) -> None:
    words = [
        word.replace("LAUNCH", "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8")
        for word in _words(line)
    ]
    words = [next(iter(entries())) if word == "CODE" else word for word in words]
    monkeypatch.chdir(tmp_path)
    if "--" in words:
        head, tail = words[: words.index("--") + 1], " ".join(words[words.index("--") + 1 :])
        words = [*head, tail]
    if any(word in ("FILE", "...", "<launch") for word in words) or "<" in line:
        pytest.skip("a form, not a command")
    assert main.run(words[1:]) in (0, 1), capsys.readouterr().err


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_list_of_documents_is_whole() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    listed = re.findall(r"^\| \[(.+)\]\(\1\)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == pages


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*.svg")), ids=lambda path: path.name)
def test_no_text_of_a_picture_begins_with_a_blank(picture: Path) -> None:
    """Some renderers drop it, and columns lose their places (docs/make_pictures.py)."""
    assert not re.findall(r"<text [^>]*>(?:&#160;|[\xa0\u2800])", picture.read_text())


@pytest.mark.tools("make")
@pytest.mark.parametrize("target", ["test", "soak"])
@pytest.mark.parametrize("given", ["tests/recording", ""])
def test_make_runs_the_tests_that_are_asked_for(target: str, given: str) -> None:
    # As from a shell: the make that runs this test would make it a make within a make, which says more.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-n", target, f"ARGS={given}", "VENV=/nowhere"]
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    words = shlex.split(shown.stdout.splitlines()[-1])
    assert [word for word in words if word.startswith("tests")] == given.split(), "without any, those of pyproject.toml"
