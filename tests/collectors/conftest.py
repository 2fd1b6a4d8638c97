"""What several files of this folder are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.collectors.nvml_shim import Driver, build


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        "new": build(tmp_path_factory.mktemp("new")),
        "old": build(tmp_path_factory.mktemp("old"), "-DWITHOUT_NEW"),
        "named": build(tmp_path_factory.mktemp("named"), "-Wl,-soname,libnvidia-ml.so.1"),
    }


@pytest.fixture
def driver(
    libraries: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Driver]]:
    made: list[Driver] = []

    def load(kind: str = "new") -> Driver:
        made.append(Driver(libraries[kind], tmp_path / "state", monkeypatch))
        return made[-1]

    yield load
    for one in made:
        one.say()
        while one.sessions:
            one.library.nvmlShutdown()
