"""Lines that nobody wrote: mutated ones, and any text."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.serverlog_events import LogAssembler
from tests.collectors.log_messages import MESSAGES
from tests.collectors.soak import TIMES

SEEDS = [message for message, _, _ in MESSAGES] + [
    "[2026-11-29 09:00:00.123 DP1 TP5 EP5] Decode batch, #running-req: 3, #token: 2, cuda graph: True",
    "2026-11-29T09:00:00.123456789Z stdout P server_args=ServerArgs(model_path='/m', tp_size=8)",
    '{"log":"Traceback (most recent call last):\\n","stream":"stdout","time":"2026-11-29T09:00:00Z"}',
]


def test_mutated_lines_are_read() -> None:
    chance = random.Random(7)
    assembler = LogAssembler("a:1")
    for _ in range(1500 * TIMES):
        line = list(chance.choice(SEEDS))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(line))
            line[at] = chance.choice(
                ["", " ", "[", "]", "'", ":", "9" * 30, chr(chance.randrange(0x2FF)), line[at] * 50]
            )
        assembler.feed(["".join(line)], 5.0)
    assert len(assembler.take()) > 10


@settings(max_examples=300 * TIMES, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_lines_are_read(lines: list[str]) -> None:
    assembler = LogAssembler("a:1")
    assembler.feed(lines, 5.0)
    assembler.take()
