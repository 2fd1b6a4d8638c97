"""Every wording of SGLang's log lines is told apart, in public logs too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from collectors.serverlog_batches import match_batch
from collectors.serverlog_events import LogAssembler
from collectors.serverlog_lines import WORDINGS, match_message
from collectors.serverlog_prefix import split_prefix
from tests.collectors.log_messages import MESSAGES


@pytest.mark.parametrize(("message", "kind", "fields"), MESSAGES, ids=[message[:40] for message, _, _ in MESSAGES])
def test_wordings(message: str, kind: str, fields: dict[str, Any]) -> None:
    assert match_message(split_prefix(message).message) == (kind, fields)


def test_every_wording_is_tried() -> None:
    tried = {kind for _, kind, _ in MESSAGES}
    assert {wording.kind for wording in WORDINGS} - tried == {"prefetch_begin"}
    assert match_message("Prefetching 157 pages for request 96fb") == ("prefetch_begin", {"pages": 157, "rid": "96fb"})


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Load weight",
        "Allocating",
        "KV Cache is fine",
        "Prefill of something else",
        'INFO:     127.0.0.1:52024 - "GET /metrics HTTP/1.1" 200 OK',
        "Not enough coffee",
    ],
)
def test_near_misses(message: str) -> None:
    assert match_message(message) is None
    assert match_batch(message) is None


def test_batch_lines() -> None:
    decode = (
        "Decode batch, #running-req: 3, #token: 266624, token usage: 0.43, accept len: 1.67, accept rate: 0.13, "
        "pre-allocated usage: 0.22, #prealloc-req: 0, #transfer-req: 1, #retracted-req: 0, #host-receive-req: 2, "
        "cuda graph: True, gen throughput (token/s): 183.10, #queue-req: 0"
    )
    assert match_batch(decode) == (
        "decode_batch",
        {
            "running_requests": 3,
            "tokens": 266624,
            "token_usage_ratio": 0.43,
            "accept_length": 1.67,
            "accept_ratio": 0.13,
            "preallocated_ratio": 0.22,
            "prealloc_requests": 0,
            "transfer_requests": 1,
            "retracted_requests": 0,
            "host_receive_requests": 2,
            "is_cuda_graph": True,
            "gen_tokens_per_second": 183.1,
            "queued_requests": 0,
        },
    )
    prefill = (
        "Prefill batch [12], #new-seq: 1, #new-token: 8192, #cached-token: 0, full token usage: 0.31, swa token usage: "
        "0.02, #running-req: 0, #queue-req: 2, #pending-token: 12288, #bootstrap-req: 1, #inflight-req: 2, "
        "#optimistic-req: 0, #replay-token: 5, cuda graph: False, input throughput (token/s): 512.44, "
        "fwd occupancy: 97.50%, surprise: 5, #queue-req: broken"
    )
    found = match_batch(prefill)
    assert found is not None
    kind, fields = found
    assert (kind, fields["new_requests"], fields["replay_tokens"]) == ("prefill_batch", 1, 5)
    assert (fields["full_token_usage_ratio"], fields["occupancy_percent"]) == (0.31, 97.5)
    assert (fields["bootstrap_requests"], fields["is_cuda_graph"]) == (1, False)


@pytest.mark.shared
def test_genuine_pool_lines(shared: Path) -> None:
    lines = (shared / "samples" / "hostpool_0.5.18_tp8_size120_ok.log").read_text().splitlines()
    assembler = LogAssembler("a:1")
    assembler.feed(lines, 0.0)
    events = assembler.take()
    assert [event.kind for event in events].count("host_pool") == 8
    assert [event.kind for event in events].count("host_indexer") == 8
    assert {event.rank for event in events} == {f"TP{rank}" for rank in range(8)}


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01-glm52-fp8-8xh200-hicache96-golden.log", {"host_pool", "host_indexer"}),
        ("02-swap-buffcache-tp4-size40.log", {"host_pool"}),
        ("07-reserve-message.log", {"host_pool_failed"}),
        ("14-hostregister-rocm-ceiling.log", {"pin_failed"}),
        ("20-memlock-register.log", {"registration_failed"}),
        ("23-ratio2-small-model.log", {"host_pool", "capacity"}),
        ("26-issue31600-cp8.log", {"host_pool", "jit_fallback"}),
        ("28-decode-lines-acceptlen.log", {"decode_batch"}),
        ("34-prefetch-zero.log", {"prefetch", "prefetch_begin"}),
        ("48-glm52-pd-load-lines.log", {"weights_end"}),
        ("50-kvtransfer-other-rank.log", {"pd_failed"}),
        ("52-bootstrap-timeout.log", {"pd_failed"}),
        ("53-mooncake-tcp.log", {"transport"}),
        ("71-numactl-dies.log", {"numa_failed"}),
        ("88-dsv4-pools.log", {"host_pool_other"}),
        ("89-qwen3-units.log", {"l1_pool", "host_pool", "capacity", "storage"}),
    ],
)
def test_public_cases(shared: Path, name: str, expected: set[str]) -> None:
    assembler = LogAssembler("a:1")
    assembler.feed((shared / "cases" / "inputs" / name).read_text().splitlines(), 0.0)
    assert expected <= {event.kind for event in assembler.take()}
