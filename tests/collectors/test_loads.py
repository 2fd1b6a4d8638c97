"""`/v1/loads` of 0.5.18 and 0.5.23."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.loads import LoadsCollector, parse
from ranktop.sample import SourceError
from tests.collectors.sglang_stub import stub_server

# The fields of LoadSnapshot.to_dict in managers/load_snapshot.py of 0.5.18.
ENTRY = {
    "timestamp": 1700000000.5,
    "dp_rank": 1,
    "num_running_reqs": 3,
    "num_waiting_reqs": 2,
    "num_used_tokens": 1000,
    "max_total_num_tokens": 432000,
    "token_usage": 0.01,
    "gen_throughput": 812.5,
    "decode_moments": None,
    "memory": {"weight_gb": 91.4, "kv_cache_gb": 24.0, "graph_gb": 2.39, "token_capacity": 432000},
    "speculative": {"accept_length": 2.8, "accept_rate": 0.6},
    "disaggregation": {"mode": "prefill", "prefill_bootstrap_queue_reqs": 4, "prefill_inflight_queue_reqs": 1},
    "queues": {"waiting": 2, "grammar": 0, "paused": 0, "retracted": 1, "prealloc_ready": 0},
}


def test_every_field() -> None:
    first, second = parse("a:1", {"loads": [ENTRY, {"dp_rank": 0, "timestamp": 0.0}]})
    assert (first.dp_rank, first.at_unix_seconds, first.running_requests, first.mode) == (0, None, None, None)
    assert (second.dp_rank, second.at_unix_seconds) == (1, 1700000000.5)
    assert (second.running_requests, second.waiting_requests, second.used_tokens) == (3, 2, 1000)
    assert (second.capacity_tokens, second.token_usage_ratio, second.weight_gib) == (432000, 0.01, 91.4)
    assert (second.accept_length, second.accept_ratio) == (2.8, 0.6)
    assert (second.mode, second.bootstrap_queue_requests, second.inflight_queue_requests) == ("prefill", 4, 1)
    assert (second.prealloc_queue_requests, second.retracted_requests) == (None, 1)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((200, b"{}"), "bad_answer"),
        ((200, b"nonsense"), "bad_answer"),
        ((200, b"[" * 100_000), "bad_answer"),
        ((401, b""), "http_401"),
        ((404, b""), "http_404"),
    ],
)
def test_bad_answers(answer: tuple[int, bytes], code: str) -> None:
    with stub_server({"/v1/loads": answer}) as stub, pytest.raises(SourceError) as caught:
        LoadsCollector("a:1", stub.url).read(None, 0.0)
    assert caught.value.code == code


def test_over_http() -> None:
    with stub_server({"/v1/loads": (200, json.dumps({"loads": [ENTRY]}).encode())}) as stub:
        (snapshot,) = LoadsCollector("a:1", stub.url).read(None, 0.0)
    assert snapshot.running_requests == 3
    assert stub.asked[0][0] == "/v1/loads?include=core,memory,spec,disagg,queues"


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers())


@given(st.lists(st.dictionaries(st.sampled_from(list(ENTRY)), VALUES, max_size=6) | VALUES, max_size=4))
def test_any_list_is_read(entries: list[Any]) -> None:
    assert len(parse("a:1", {"loads": entries})) <= len(entries)
