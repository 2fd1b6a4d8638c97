"""A running stand-in node, shared by the tests that only read it."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator

import pytest

from ranktop.demo.launcher import DemoNode

_BEHIND_IT = (b"sglang:load_back_tokens_total", b"sglang:e2e_request_latency_seconds_count", b"num_retracted_reqs")


@pytest.fixture(scope="session")
def node() -> Iterator[DemoNode]:
    """A healthy node with some traffic behind it."""
    with DemoNode(speed=20.0) as node:
        node.wait_ready(60.0)
        deadline = time.monotonic() + 60.0
        while not all(name in _page(node) for name in _BEHIND_IT):
            assert time.monotonic() < deadline, "no traffic"
            time.sleep(0.2)
        yield node


def _page(node: DemoNode) -> bytes:
    with urllib.request.urlopen(node.url + "/metrics", timeout=10) as answer:
        return answer.read()
