"""No finding may ever advise what findings.md forbids: over every string of the rules, and of findings that fire."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("ranktop/reconcile/rules", "ranktop/plan")

FORBIDDEN = {
    "kill -9 without namespace pid and start time": r"kill\s+-(9|KILL)|SIGKILL",
    "GPU reset on NVSwitch machines": r"--gpu-reset|nvidia-smi\s+-r\b",
    "dropping caches": r"drop_caches|drop(ping)? (the )?(page )?caches?\b",
    "migratepages": r"migratepages|move the pages",
    "ulimit -l for CUDA pins": r"ulimit\s+-l",
    "flushing the cache destroys evidence": r"/?flush_cache",
    "clearing or detaching storage destroys evidence": r"(clear|detach|wipe)\w*\s+(the\s+)?(storage|L3|hicache)",
    "longer bootstrap time-outs": r"(raise|increase|lengthen|longer)[^.;]*(BOOTSTRAP_TIMEOUT|bootstrap time-?out)",
    "retrying an ambiguous request": r"\b(retry|resend|repeat) (the|that|this) (failed |lost )?request",
}


def strings(path: Path) -> Iterator[str]:
    """Every string of a file that is no docstring, pieces of one expression joined."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))


def findings_of(path: Path) -> Iterator[tuple[int, set[str]]]:
    """Line and keywords of every `Finding(...)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
            yield node.lineno, {keyword.arg or "**" for keyword in node.keywords}


FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_forbidden_is_advised(path: Path) -> None:
    said = [
        f"{what}: {text!r}"
        for text in strings(path)
        for what, pattern in FORBIDDEN.items()
        if re.search(pattern, text, re.IGNORECASE)
    ]
    assert said == []


@pytest.mark.parametrize(
    "text",
    [
        "run kill -9 4242",
        "nvidia-smi --gpu-reset -i 3",
        "echo 3 > /proc/sys/vm/drop_caches",
        "use migratepages to bring them home",
        "set ulimit -l unlimited",
        "call /flush_cache",
        "detach the storage backend",
        "raise SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT",
        "retry the failed request",
    ],
)
def test_each_pattern_catches_what_it_is_for(text: str) -> None:
    assert sum(1 for pattern in FORBIDDEN.values() if re.search(pattern, text, re.IGNORECASE)) == 1


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name == "rules"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_finding_advises_something(path: Path) -> None:
    """A flag, a command or a decision: no finding without advice and evidence."""
    bare = [line for line, keywords in findings_of(path) if "advice" not in keywords]
    unproven = [line for line, keywords in findings_of(path) if not keywords & {"evidence", "**"}]
    assert (bare, unproven) == ([], [])


def advices_of(path: Path) -> Iterator[str]:
    """What every `advice=` begins with, on each of its branches."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "advice":
            yield from _beginnings(node.value)


def _beginnings(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield from _beginnings(node.values[0])
    elif isinstance(node, ast.BinOp):
        yield from _beginnings(node.left)
    elif isinstance(node, ast.IfExp):
        yield from _beginnings(node.body)
        yield from _beginnings(node.orelse)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_advice_is_a_sentence_and_no_bare_flag(path: Path) -> None:
    assert [text for text in advices_of(path) if text.startswith("-")] == []
