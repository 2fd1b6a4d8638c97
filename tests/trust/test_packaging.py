"""The wheel and the sdist: what is in them, what is not, and that the wheel runs where nothing else is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PACKAGES = ("ranktop", "collectors", "tui", "themes")
_OURS = re.compile(r"(?:ranktop|collectors|tui|themes)/|ranktop-[\d.]+\.dist-info/")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built without a network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


def _data_files() -> set[str]:
    """What the packages hold beside Python, as git knows it."""
    listed = subprocess.run(["git", "ls-files", *_PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.splitlines() if not name.endswith(".py")}


def test_the_wheel_has_all_data_files_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if not _OURS.match(name)} == set()
    data = _data_files()
    assert any(name.endswith(".tcss") for name in data)
    assert sum(name.startswith("themes/") for name in data) >= 5
    assert data <= names


def test_the_sdist_has_no_tests_and_can_build_the_wheel(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE"} <= names
    assert {name for name in names if name.startswith(("tests", "docs", ".ci"))} == set()
    assert _data_files() <= names


def test_its_words_name_nobodys_machine(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith("METADATA"))
        headers = Parser().parsestr(archive.read(metadata).decode())
        whole = b"".join(
            archive.read(name) for name in archive.namelist() if name.endswith((".py", ".toml", "METADATA"))
        )
    assert headers["Name"] == "ranktop"
    assert headers["License-Expression"] == "Apache-2.0"
    assert headers["Requires-Python"] == ">=3.11"
    assert re.findall(rb"/(?:work|root|home)/\w+", whole) == []


def test_the_lock_has_hashes_and_no_addresses() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.findall(r"^[\w.-]+==\S+.*?(?=^\S|\Z)", lock, re.MULTILINE | re.DOTALL)
    assert len(pinned) > 20
    assert [block.split()[0] for block in pinned if "--hash=sha256:" not in block] == []
    assert "://" not in lock


@pytest.mark.registry
def test_the_wheel_alone_runs_a_demo(wheel: Path, tmp_path: Path) -> None:
    """In an empty environment, with the versions of the lock."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("".join(f"{pin}\n" for pin in re.findall(r"^([\w.-]+==[^\s;]+)", lock, re.MULTILINE)))
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", *_without_pip(), tmp_path / "venv"], check=True, timeout=60)
    installed = subprocess.run(
        [*_installer(python), "-c", str(constraints), str(wheel)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    if re.search(r"(?i)connection|resolve host|temporary failure|dns error|timed out", installed.stderr):
        pytest.skip("no package registry can be reached")
    assert installed.returncode == 0, installed.stderr
    ranktop = str(python.with_name("ranktop"))
    launch = "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp-size 8 --hicache-size 120"
    for arguments in (["plan", "--", launch], ["demo", "--headless", "3"]):
        done = subprocess.run(
            [ranktop, *arguments], capture_output=True, text=True, timeout=60, cwd=tmp_path, env={"HOME": str(tmp_path)}
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""


def _without_pip() -> list[str]:
    return ["--without-pip"] if shutil.which("uv") else []


def _installer(python: Path) -> list[str]:
    if shutil.which("uv"):
        return ["uv", "pip", "install", "-q", "--python", str(python)]
    return [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
