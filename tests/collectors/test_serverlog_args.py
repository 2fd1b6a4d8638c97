"""The server's arguments as its log prints them, whole and cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.serverlog_args import parse_server_args


@pytest.mark.parametrize(
    "text",
    [
        "ServerArgs(model_path='/m (x), y', tp_size=8, api_key='S1', mode=<Mode.A: 'a,b'>, lst=[1, (2, 3)], d=None)",
        "{'model_path': '/m (x), y', 'tp_size': 8, 'api_key': 'S1', 'mode': <Mode.A: 'a,b'>, 'lst': [1, (2, 3)], "
        "'d': None}",
    ],
)
def test_server_args_of_both_forms(text: str) -> None:
    args = parse_server_args(text)
    assert args == {"model_path": "/m (x), y", "tp_size": 8, "mode": "<Mode.A: 'a,b'>", "lst": [1, [2, 3]], "d": None}


@given(st.integers(0, 120))
def test_cut_server_args_give_what_stands_before_the_cut(length: int) -> None:
    text = "ServerArgs(model_path='/m', tp_size=8, hicache_size=120, api_key='S1', hicache_ratio=2.0, page_size=64)"
    args = parse_server_args(text[:length])
    assert "S1" not in str(args)
    assert args.get("tp_size") in (None, 8)
    assert args.get("hicache_size") in (None, 120)
