"""Numbers of strangers: what no counter, no sum and no recording holds is not read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from collectors import bootstrap, loads, requests_log, server_info, serverlog_args, serverlog_lines
from collectors.json_values import LARGEST, number, whole, within_64_bits

GIANT = 10**30


@pytest.mark.parametrize(
    ("value", "told"),
    [(3, 3), (0, 0), (-5, -5), (LARGEST, LARGEST), (LARGEST + 1, None), (-GIANT, None), (True, None), (1.0, None)],
)
def test_whole(value: Any, told: int | None) -> None:
    assert whole(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(2.5, 2.5), (3, 3.0), (10**400, None), (float("inf"), None), (float("nan"), None), (False, None), ("1", None)],
)
def test_number(value: Any, told: float | None) -> None:
    assert number(value) == told


def test_a_tree_keeps_its_shape() -> None:
    assert within_64_bits({"a": [1, GIANT, True, "x", None, {"b": -GIANT}]}) == {
        "a": [1, None, True, "x", None, {"b": None}]
    }


def test_no_reader_lets_one_in() -> None:
    """One such number would cost a recording every sample that holds it."""
    info = server_info.parse("a", {"tp_size": GIANT, "max_total_num_tokens": GIANT}, {})
    assert (info.args["tp_size"], info.max_total_num_tokens) == (None, None)
    (load,) = loads.parse("a", {"loads": [{"num_used_tokens": GIANT, "timestamp": 10**400}]})
    assert (load.used_tokens, load.at_unix_seconds) == (None, None)
    assert requests_log.parse_lines([json.dumps({"prompt_tokens": GIANT}).encode()]) == ()
    assert serverlog_args.parse_server_args(f"ServerArgs(tp_size={GIANT}, dp_size=2)") == {
        "tp_size": None,
        "dp_size": 2,
    }
    assert serverlog_lines.match_message(f"KV Cache is allocated. #tokens: {GIANT}") is None
    assert bootstrap.registered_count(b"not fully registered yet (%s workers registered)" % (b"9" * 5000)) is None
    msgspec.msgpack.encode([info, load])
