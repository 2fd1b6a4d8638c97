"""The demo's log lines against genuine and composed ones: same words, other numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ranktop.demo import loglines
from ranktop.demo.scenarios import SCENARIOS
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


@pytest.mark.shared
def test_packed_drafts_and_layer_shards_have_the_shapes_of_sglang(shared: Path) -> None:
    def shape(line: str) -> str:
        return re.sub(r"partitions=.*", "partitions=", _shape(line)).replace("page_first_direct", "page_first")

    lines = loglines.host_pools(pool_sizes(SCENARIOS["spec-collapse"].launch))
    lines += loglines.shard_plan(1, ((0, 40), (40, 78)), early=1)
    samples = (shared / "samples").glob("*_0.5.18_*.log")
    known = {shape(line.partition("] ")[2]) for path in samples for line in path.read_text().splitlines()}
    assert [line for line in lines if shape(line) not in known] == []


def test_a_rank_that_begins_early_overlaps_the_one_before() -> None:
    ranges = ((0, 40), (40, 78))
    assert "rank=1, local=[40,78), global=[40,78), " in loglines.shard_plan(1, ranges)[0]
    assert "rank=1, local=[39,78), global=[39,78), " in loglines.shard_plan(1, ranges, early=1)[0]


def test_the_prefix_is_local_time_and_the_tag() -> None:
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d TP3\] words\n", loglines.line(1e9, "words", "TP3"))
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] words\n", loglines.line(1e9, "words"))


def test_arguments_are_a_repr() -> None:
    assert loglines.server_args({"tp_size": 8, "api_key": "k"}) == "server_args=ServerArgs(tp_size=8, api_key='k')"
