"""`Prefill batch, ...` and `Decode batch, ...` lines as key and value: their order is not fixed."""

from __future__ import annotations

import re
from typing import Any

_FIELDS = {
    "#new-seq": "new_requests",
    "#new-token": "new_tokens",
    "#cached-token": "cached_tokens",
    "#replay-token": "replay_tokens",
    "#pending-token": "pending_tokens",
    "#token": "tokens",
    "#running-req": "running_requests",
    "#queue-req": "queued_requests",
    "#bootstrap-req": "bootstrap_requests",
    "#inflight-req": "inflight_requests",
    "#optimistic-req": "optimistic_requests",
    "#prealloc-req": "prealloc_requests",
    "#transfer-req": "transfer_requests",
    "#retracted-req": "retracted_requests",
    "#host-receive-req": "host_receive_requests",
    "token usage": "token_usage_ratio",
    "full token usage": "full_token_usage_ratio",
    "swa token usage": "swa_token_usage_ratio",
    "mamba usage": "mamba_usage_ratio",
    "pre-allocated usage": "preallocated_ratio",
    "accept len": "accept_length",
    "accept rate": "accept_ratio",
    "cap len": "cap_length",
    "block accept len": "block_accept_length",
    "cuda graph": "is_cuda_graph",
    "input throughput (token/s)": "input_tokens_per_second",
    "gen throughput (token/s)": "gen_tokens_per_second",
    "fwd occupancy": "occupancy_percent",
}
_KINDS = {"Prefill batch": "prefill_batch", "Decode batch": "decode_batch"}
_HEAD = re.compile(r"(Prefill batch|Decode batch)(?: \[[^\]]*\])?[,.] ")


def match_batch(message: str) -> tuple[str, dict[str, Any]] | None:
    """Kind and fields of a batch line, None for any other. Values that cannot be read are left out."""
    head = _HEAD.match(message)
    if head is None:
        return None
    fields: dict[str, Any] = {}
    for item in message[head.end() :].split(", "):
        name, colon, text = item.partition(": ")
        field = _FIELDS.get(name)
        if field is not None and colon:
            value = _value(text)
            if value is not None:
                fields[field] = value
    return _KINDS[head[1]], fields


def _value(text: str) -> bool | int | float | None:
    text = text.rstrip(" .%")
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return None
