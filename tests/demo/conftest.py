"""A running stand-in node, shared by the tests that only read it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ranktop.demo.launcher import DemoNode


@pytest.fixture(scope="module")
def node() -> Iterator[DemoNode]:
    """A healthy node with some traffic behind it."""
    with DemoNode(speed=20.0) as node:
        node.wait_ready(60.0)
        time.sleep(4.0)
        yield node
