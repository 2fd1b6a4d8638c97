"""Shared fixtures, and the rules by which a test may skip."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
DATA = ROOT / "tests" / "data"


def pytest_configure(config: pytest.Config) -> None:
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
    # Commands that tests run keep launches in the state folder, and must not find the user's configuration.
    own = tempfile.mkdtemp(prefix="ranktop-tests-")
    config.add_cleanup(lambda: shutil.rmtree(own, ignore_errors=True))
    os.environ |= {"XDG_STATE_HOME": own, "XDG_CONFIG_HOME": own}
    # Snapshots and widths must not depend on who runs the tests, and no test may see the user's own files.
    for name in ("NO_COLOR", "COLORTERM", "COLUMNS", "LINES", "SSH_CONNECTION", "RANKTOP_API_KEY"):
        os.environ.pop(name, None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("shared") and not SHARED.is_dir():
        pytest.skip("needs ../shared beside the checkout")
    for marker in item.iter_markers("tools"):
        missing = [name for name in marker.args if shutil.which(name) is None]
        if missing:
            _skip_or_fail(f"needs {', '.join(missing)}")


def _skip_or_fail(reason: str) -> None:
    if "tools" in os.environ.get("RANKTOP_REQUIRE", "").split(","):
        pytest.fail(f"{reason}, and RANKTOP_REQUIRE=tools says it must be there", pytrace=False)
    pytest.skip(reason)


def program(path: str) -> ModuleType:
    """A Python file of the checkout that is in no package, as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def shared() -> Path:
    """The folder of facts, samples and captures beside the checkout. Mark the test with `shared`."""
    return SHARED


@pytest.fixture
def data() -> Path:
    """Inputs that the project ships for its own tests."""
    return DATA
