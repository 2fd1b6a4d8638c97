"""The demo's log lines against genuine and composed ones: same words, other numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ranktop.demo import loglines
from ranktop.demo.sizes import pool_sizes
from ranktop.demo.traffic import Traffic

SIZES = pool_sizes()


def _shape(line: str) -> str:
    """A line without its numbers, its list of batch sizes and its time."""
    line = re.sub(r"bs=\[[^]]*\]", "bs=[]", line.rstrip("\n"))
    return re.sub(r"\d+(\.\d+)?", "0", line)


@pytest.mark.shared
def test_lines_have_the_shapes_of_sglang(shared: Path) -> None:
    step = Traffic(7, SIZES.tokens).step(30.0)
    messages = [*loglines.start_up(0, SIZES), *loglines.host_pools(SIZES), loglines.prefill(step, step.prefills[0])]
    lines = [loglines.line(0.0, message, "TP0") for message in messages] + [loglines.line(0.0, loglines.READY)]
    samples = (shared / "samples").glob("*_0.5.18_*.log")
    known = {_shape(line) for path in samples for line in path.read_text().splitlines()}
    # The samples capture graphs for a draft and log packed MTP layers; this launch has neither.
    known |= {line.replace("target verify", "target decode") for line in known}
    known |= {re.sub(r", packed MTP.*", ".", line) for line in known}
    known |= {line.replace("page_first_direct", "page_first") for line in known}
    known |= {re.sub(r"\.\.$", ".", line) for line in known}
    assert [line for line in map(_shape, lines) if line not in known] == []


def test_the_prefix_is_local_time_and_the_tag() -> None:
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d TP3\] words\n", loglines.line(1e9, "words", "TP3"))
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] words\n", loglines.line(1e9, "words"))


def test_arguments_are_a_repr() -> None:
    assert loglines.server_args({"tp_size": 8, "api_key": "k"}) == "server_args=ServerArgs(tp_size=8, api_key='k')"
