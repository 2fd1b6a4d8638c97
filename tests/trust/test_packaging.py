"""The wheel and the sdist: what is in them, what is not, and that the wheel runs where nothing else is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from conftest import program
from support.http_answers import closed_port

ROOT = Path(__file__).parents[2]
_PACKAGES = ("ranktop", "collectors", "tui", "themes")
packaging = pytest.mark.xdist_group("packaging")
_OURS = re.compile(
    r"(?:ranktop|collectors|tui|themes)/|ranktop-[\d.]+\.(?:dist-info/|data/data/share/man/man1/ranktop\.1$)"
)


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


class Environment:
    """One that has the wheel and nothing else, with the versions of the lock."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder, self._wheel = folder, wheel
        lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
        self._constraints = folder / "constraints.txt"
        self._constraints.write_text("".join(f"{pin}\n" for pin in re.findall(r"^([\w.-]+==[^\s;]+)", lock, re.M)))
        self.python = folder / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", *_without_pip(), folder / "venv"], check=True, timeout=60)
        self.install(str(wheel))

    def install(self, *what: str) -> None:
        command = [*_installer(self.python), "-c", str(self._constraints), *what]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        if re.search(r"(?i)connection|resolve host|temporary failure|dns error|timed out", done.stderr):
            pytest.skip("no package registry can be reached")
        assert done.returncode == 0, done.stderr

    def extra(self, name: str) -> None:
        self.install(f"ranktop[{name}] @ {self._wheel.as_uri()}")

    def ranktop(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs it in its own folder, as somebody with an empty home."""
        command = [str(self.python.with_name("ranktop")), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, cwd=self.folder, env={"HOME": str(self.folder)}
        )

    def runs(self, *arguments: str) -> str:
        """Its output; it must end well."""
        done = self.ranktop(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def evaluates(self, program: str) -> str:
        done = subprocess.run([self.python, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return Environment(tmp_path_factory.mktemp("installed"), wheel)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="what a newer Python needs is less")
def test_the_list_of_licences_is_current() -> None:
    maker = program("docs/make_licences.py")
    page = maker.PAGE.read_text(encoding="utf-8")
    assert page == maker.page(), "run make licences"
    assert "unknown" not in page


@pytest.mark.registry
@packaging
def test_the_wheel_alone_runs_a_demo(environment: Environment) -> None:
    launch = "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp-size 8 --hicache-size 120"
    for arguments in (["plan", "--", launch], ["demo", "--headless", "5"]):
        done = environment.ranktop(*arguments)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.registry
@packaging
def test_the_manual_page_comes_with_it(environment: Environment) -> None:
    assert (environment.folder / "venv" / "share" / "man" / "man1" / "ranktop.1").is_file()


@pytest.mark.registry
@packaging
def test_the_parquet_extra(environment: Environment) -> None:
    environment.runs("record", "-o", "a.rtop", "--pid", "1", "--duration", "2")
    assert "parquet" in environment.ranktop("export", "a.rtop", "--format", "parquet", "-o", "a.parquet").stderr
    environment.extra("parquet")
    environment.runs("export", "a.rtop", "--format", "parquet", "-o", "a.parquet")
    read = f"import pyarrow.parquet as p; print(p.read_table({str(environment.folder / 'a.parquet')!r}).num_rows)"
    assert int(environment.evaluates(read)) >= 1


@pytest.mark.registry
@packaging
def test_the_web_extra(environment: Environment) -> None:
    assert "ranktop[web]" in environment.ranktop("serve").stderr
    environment.extra("web")
    address = closed_port()
    command = [
        environment.python.with_name("ranktop"),
        "serve",
        "--port",
        address.rpartition(":")[2],
        "--",
        "--pid",
        "1",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert "ranktop" in _page(address, seconds=20)
    finally:
        server.terminate()
        server.wait(10)


def _page(address: str, seconds: float) -> str:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return urllib.request.urlopen(address, timeout=5).read().decode()
        except OSError:
            assert time.monotonic() < deadline, "it does not listen"
            time.sleep(0.2)


@pytest.mark.registry
@pytest.mark.tools("gcc")
@packaging
def test_the_numa_extra(environment: Environment) -> None:
    """By the recipe of README: what is on PyPI holds C that Python 3.11 does not compile."""
    if not Path("/usr/include/numa.h").exists():
        pytest.skip("needs libnuma-dev")
    environment.install("cython<4", "setuptools", "wheel")
    environment.install("--no-build-isolation", "numa==1.4.6")
    told = environment.evaluates(
        "from collectors.numa_topology import library_distances, read_topology\n"
        "topology = read_topology('/sys')\n"
        "name, distances = library_distances(topology.nodes)\n"
        "print(name, len(topology.nodes) ** 2 == len(distances))"
    )
    assert told == "the numa package True\n"


def _without_pip() -> list[str]:
    return ["--without-pip"] if shutil.which("uv") else []


def _installer(python: Path) -> list[str]:
    if shutil.which("uv"):
        return ["uv", "pip", "install", "-q", "--python", str(python)]
    return [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
