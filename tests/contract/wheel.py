"""An SGLang wheel read as text: its metrics, server arguments, log templates. Nothing of it is imported or run."""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_KINDS = {"Counter": "counter", "Gauge": "gauge", "Histogram": "histogram", "Summary": "summary"}
# Where metrics, arguments and the log lines that ranktop reads come from. Models and kernels are most of a wheel.
_FOLDERS = re.compile(
    r"sglang/srt/(?:[^/]+\.py|(?:observability|managers|mem_cache|disaggregation|model_executor|model_loader|utils|"
    r"arg_groups|entrypoints|distributed)/.*\.py|layers/[^/]*(?:dsa|split)[^/]*\.py)|sglang/kernels/ops/kvcache/.*\.py"
)
_OFFLINE = re.compile(r"connection|resolve|resolution|timed out|unreachable|retrying|proxy", re.IGNORECASE)
_PLATFORM = ["--only-binary=:all:", "--python-version", "3.11", "--platform", "manylinux_2_34_x86_64"]


class NoRegistryError(Exception):
    """No package registry answers."""


class Metric(NamedTuple):
    """One metric family as a collector declares it."""

    kind: str
    labels: frozenset[str]


class Wheel(NamedTuple):
    """What one wheel's source says. `arguments`: server arguments with their defaults, where these are literals."""

    version: str
    metrics: dict[str, Metric]
    arguments: dict[str, Any]
    templates: tuple[str, ...]
    """Every string of the source; `{...}` holds the expression of an f-string's field."""


def fetch(version: str | None, folder: Path | None = None) -> Path:
    """Path of the wheel of that version (the newest for None), downloaded by pip unless it is there already."""
    folder = folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ranktop" / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    if version is not None:
        for path in folder.glob(f"sglang-{version}-*.whl"):
            return path
    wanted = "sglang" if version is None else f"sglang=={version}"
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        command = [*_pip(), "download", "-q", "--no-deps", *_PLATFORM, "-d", fresh, wanted]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            if _OFFLINE.search(done.stderr):
                raise NoRegistryError(done.stderr.strip().splitlines()[-1])
            raise RuntimeError(f"pip download {wanted} failed:\n{done.stderr[-2000:]}")
        (wheel,) = Path(fresh).glob("sglang-*.whl")
        return wheel.replace(folder / wheel.name)


@functools.cache
def read(path: Path) -> Wheel:
    """Parse the wheel's source."""
    metrics: dict[str, Metric] = {}
    arguments: dict[str, Any] = {}
    templates: list[str] = []
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not _FOLDERS.fullmatch(name):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of SGLang's own escapes
                tree = ast.parse(archive.read(name))
            holds_arguments = name.endswith("srt/server_args.py") or "/arg_groups/" in name
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    metrics.update(_metric(node))
                elif isinstance(node, ast.ClassDef) and holds_arguments:
                    arguments.update(_arguments(node))
                elif isinstance(node, ast.JoinedStr):
                    templates.append(_template(node))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    templates.append(node.value)
    return Wheel(path.name.split("-")[1], metrics, arguments, tuple(templates))


def rendered(template: str) -> Iterator[str]:
    """The template with plausible values for its fields."""
    text = re.sub(r"%\.\d+f", "1.25", template)
    text = re.sub(r"%[di]", "7", text)
    text = text.replace("%s", "success").replace("%%", "%")
    # `{req.rid=}` prints the repr of a text, `{x:.2f}` decimals; every other field is a number or a word.
    text = re.sub(r"\{[^{}]*rid!r\}", "'abc'", text)
    text = re.sub(r"\{[^{}]*:\.\d+f\}", "1.25", text)
    for value in ("7", "abc"):
        yield re.sub(r"\{[^{}]*\}", value, text)


def _pip() -> list[str]:
    have = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    if have.returncode == 0:
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if path := shutil.which(name):
            return [path]
    raise RuntimeError("pip is needed to fetch SGLang's wheels (python -m ensurepip)")


def _metric(call: ast.Call) -> dict[str, Metric]:
    function = call.func
    name = (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )
    kind = next((kind for suffix, kind in _KINDS.items() if name.endswith(suffix)), None)
    if kind is None:
        return {}
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    title = given.get("name") or (call.args[0] if call.args else None)
    if not (isinstance(title, ast.Constant) and isinstance(title.value, str) and title.value.startswith("sglang:")):
        return {}
    exported = title.value
    if kind == "counter" and not exported.endswith("_total"):
        exported += "_total"
    labels = given.get("labelnames")
    words = {node.value for node in ast.walk(labels) if isinstance(node, ast.Constant)} if labels is not None else set()
    return {exported: Metric(kind, frozenset(word for word in words if isinstance(word, str)))}


def _arguments(node: ast.ClassDef) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            try:
                found[statement.target.id] = ast.literal_eval(statement.value) if statement.value is not None else ...
            except ValueError:
                found[statement.target.id] = ...
    return found


def _template(node: ast.JoinedStr) -> str:
    parts: list[str] = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        elif isinstance(value, ast.FormattedValue):
            expression = ast.unparse(value.value).replace("{", "(").replace("}", ")")
            repr_mark = "!r" if value.conversion == ord("r") else ""
            spec = _template(value.format_spec) if isinstance(value.format_spec, ast.JoinedStr) else ""
            parts.append(f"{{{expression}{repr_mark}{':' + spec if spec else ''}}}")
    return "".join(parts)
