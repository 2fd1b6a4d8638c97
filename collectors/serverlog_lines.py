"""SGLang's log messages that ranktop reads, as kinds of events with typed fields.

A table: first word of the message, kind, pattern. Named groups become fields; digits become ints, decimals floats.
Wordings of 0.5.16 to 0.5.23 and the older ones of public reports. `_gib`: SGLang prints "GB" for 2**30 on the device;
`_gb`: 1e9 on the host.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_N = r"\d+(?:\.\d+)?"
_PACKED = (
    r"(?:, packed MTP (?:KV )?layers: target_layers=(?P<target_layers>\d+), draft_layers=(?P<draft_layers>\d+), "
    r"total_layers=(?P<total_layers>\d+))?"
)
_REQUEST = (
    r" failed for request rank=(?P<tp_rank>\d+) \S*rid='(?P<rid_text>[^']*)' \S*bootstrap_room=(?P<room>\d+)"
    r"(?:.*?KVTransferError\([^)]*\): (?P<reason_text>.*))?"
)


class Wording(NamedTuple):
    """One wording. `word` is the first word of the message; "" tries it on every message that nothing else took."""

    word: str
    kind: str
    pattern: re.Pattern[str]


def _wordings(rows: list[tuple[str, str, str]]) -> tuple[Wording, ...]:
    return tuple(Wording(word, kind, re.compile(pattern)) for word, kind, pattern in rows)


WORDINGS: tuple[Wording, ...] = _wordings(
    [
        ("Init", "dist_begin", r"Init torch distributed begin"),
        (
            "Init",
            "dist_end",
            rf"Init torch distributed ends\. elapsed=(?P<elapsed_seconds>{_N}) s, mem usage=(?P<used_gib>{_N}) GB",
        ),
        ("Load", "weights_begin", rf"Load weight begin\. avail mem=(?P<avail_gib>{_N}) GB"),
        (
            "Load",
            "weights_end",
            rf"Load weight end\. (?:elapsed=(?P<elapsed_seconds>{_N}) s, )?type=(?P<model_text>\w+),"
            rf".*?avail mem=(?P<avail_gib>{_N}) GB(?:, mem usage=(?P<used_gib>-?{_N}) GB)?",
        ),
        (
            "",
            "l1_pool",
            r"(?:(?P<label_text>[\w -]+?) )?KV Cache is allocated\. "
            r"(?:dtype: (?P<dtype_text>[\w.]+), )?#tokens: (?P<tokens>\d+)"
            rf"(?:, KV size: (?P<size_gib>{_N}) GB|, K size: (?P<k_gib>{_N}) GB, V size: (?P<v_gib>{_N}) GB)?",
        ),
        # Address space alone (from 0.5.20): what of it is backed is told behind the capture of graphs.
        (
            "",
            "l1_pool",
            r"(?:(?P<label_text>[\w -]+?) )?KV Cache VA upper bound\. (?:dtype: (?P<dtype_text>[\w.]+), )?"
            r"#tokens: (?P<bound_tokens>\d+)",
        ),
        (
            "Post-capture",
            "l1_pool",
            r"Post-capture KV sizing: (?:(?P<label_text>draft) )?KV cache allocated\. "
            r"dtype: (?P<dtype_text>[\w.]+), #tokens: (?P<tokens>\d+), "
            rf"KV size: (?P<size_gib>{_N}) GB(?:, avail mem=(?P<avail_gib>{_N}) GB)?",
        ),
        ("Memory", "memory_pool_end", rf"Memory pool end\. avail mem=(?P<avail_gib>{_N}) GB"),
        (
            "Capture",
            "graph_begin",
            rf"Capture (?P<phase_text>[\w ]*?)\s*(?:CUDA|cuda) graph begin\..*?avail mem=(?P<avail_gib>{_N}) GB",
        ),
        (
            "Capture",
            "graph_end",
            r"Capture (?P<phase_text>[\w ]*?)\s*(?:CUDA|cuda) graph end\."
            rf".*?elapsed=(?P<elapsed_seconds>{_N}) s, mem usage=(?P<used_gib>-?{_N}) GB"
            rf"(?:, avail mem=(?P<avail_gib>{_N}) GB)?",
        ),
        (
            "max_total_num_tokens=",
            "capacity",
            r"max_total_num_tokens=(?P<tokens>\d+)(?:, chunked_prefill_size=(?P<chunked_prefill_tokens>-?\w+))?"
            r"(?:, max_prefill_tokens=(?P<max_prefill_tokens>\d+))?"
            r"(?:, max_running_requests=(?P<max_running_requests>\d+))?(?:, context_len=(?P<context_tokens>\d+))?"
            rf"(?:, available_gpu_mem=(?P<avail_gib>{_N}) GB)?",
        ),
        (
            "Allocating",
            "host_pool",
            r"Allocating (?P<label_text>\S+) hierarchical KV host pool: (?P<tokens>\d+) tokens, "
            rf"(?P<size_gb>{_N}) GB host memory{_PACKED}",
        ),
        ("Allocating", "host_pool", rf"Allocating (?P<size_gb>{_N}) GB host memory for hierarchical KV cache"),
        (
            "Allocating",
            "host_indexer",
            rf"Allocating (?P<size_gb>{_N}) GB host memory for (?:DSA|NSA) indexer"
            rf"(?: \(layout=(?P<layout_text>\w+)\))?{_PACKED}",
        ),
        (
            "Allocating",
            "host_pool_other",
            rf"Allocating (?P<size_gb>{_N}) GB host memory for (?P<label_text>.+?) ?"
            r"(?:\((?P<detail_text>[^)]*)\))?\.?$",
        ),
        (
            "HiCache",
            "host_pool_small",
            r"HiCache (?:(?P<label_text>\S+) host|host KV) pool \((?P<host_tokens>\d+) tokens\) is smaller than the "
            r"device pool \((?P<device_tokens>\d+) tokens\)",
        ),
        (
            "Sync",
            "host_pool_sync",
            r"Sync fixed-size HiCache host token capacity from (?P<asked_tokens>\d+) to (?P<tokens>\d+)",
        ),
        (
            "Not",
            "host_pool_failed",
            r"Not enough host memory (?:available|for (?P<label_text>[\w -]+? hierarchical cache|[\w ]+ pool \S+))\. "
            rf"Requesting (?P<asked_gb>{_N}) GB but only have (?P<free_gb>-?{_N}) GB",
        ),
        (
            "cudaHostRegister",
            "pin_failed",
            r"cudaHostRegister failed \(rc=(?P<rc>\d+)(?:, (?P<reason_text>[^)]*))?\)"
            r"(?:.*?size=(?P<size_bytes>\d+))?",
        ),
        (
            "HiCache",
            "host_headroom",
            rf"HiCache memory headroom: host (?P<host_gib>-?{_N}) GiB, cgroup (?P<cgroup_gib>-?{_N}) GiB",
        ),
        (
            "HiCache",
            "host_auto_size",
            rf"HiCache auto-sizing: ratio (?P<asked_ratio>{_N}) -> (?P<ratio>{_N}); (?P<rank_gib>{_N}) GiB host memory "
            rf"per rank \(fraction (?P<fraction_ratio>{_N}), (?P<ranks>\d+) ranks on this host\), "
            rf"host pools (?P<pools_gib>{_N}) GiB",
        ),
        (
            "MLATokenToKVPoolHost",
            "host_dummy",
            rf"MLATokenToKVPoolHost dummy mode: allocator-only, size=(?P<tokens>\d+) tokens, "
            rf"saving (?P<saved_gb>{_N}) GB",
        ),
        (
            "Layer",
            "layer_plan",
            r"Layer shard plan \((?P<style_text>\w+)\): layer_num=(?P<layers>\d+), shard_size=(?P<ranks>\d+), "
            r"rank=(?P<cp_rank>\d+), local=\[(?P<local_start>\d+),(?P<local_end>\d+)\), "
            r"global=\[(?P<start>\d+),(?P<end>\d+)\), partitions=(?P<partitions_text>.*)",
        ),
        (
            "Initialized",
            "layer_comm",
            r"Initialized dedicated layer-shard broadcast NCCL communicator: rank=(?P<cp_rank>\d+), "
            r"world_size=(?P<ranks>\d+)",
        ),
        ("HiCache", "dcp", r"HiCache \+ DCP enabled.*dcp_size=(?P<dcp_size>\d+)"),
        ("Kernel", "rewritten", r"Kernel io backend does not support page first direct layout, switching"),
        ("Page", "rewritten", r"Page first layout is not supported with direct IO backend, switching"),
        ("Mooncake", "rewritten", r"Mooncake storage backend does not support layer_first layout, switching"),
        ("Mooncake/Ascend", "rewritten", r"Mooncake/Ascend MemCache storage backend does not support .*switching"),
        ("Optimistic", "rewritten", r"Optimistic prefill (?:only )?supports"),
        ("Setting", "rewritten", r"Setting page size to (?P<page_tokens>\d+) for "),
        (
            "KV",
            "retract",
            r"KV cache pool is full\. Retract requests\. #retracted_reqs: (?P<requests>\d+)"
            r"(?:, #new_tokens_gained: (?P<gained_tokens>\d+))?"
            rf".*?(?:#new_token_ratio: (?P<ratio_before>{_N}) -> (?P<ratio_after>{_N}))?$",
        ),
        ("retract_decode:", "aborted_oom", r"retract_decode: aborted last request (?P<rid_text>\S+) due to OOM"),
        ("Prefill", "out_of_memory", r"(?P<phase_text>Prefill) out of memory"),
        ("Decode", "out_of_memory", r"(?P<phase_text>Decode) out of memory"),
        ("Out", "out_of_memory", r"Out of memory\. Try to lower your batch size"),
        ("Try", "out_of_memory", r"Try to allocate (?P<asked_tokens>\d+) tokens"),
        (
            "Not",
            "start_out_of_memory",
            r"Not enough memory\. Please try to increase --mem-fraction-static"
            rf"(?:.*?mem_fraction_static=(?P<fraction_ratio>{_N}))?",
        ),
        (
            "HiCache",
            "prefetch",
            r"HiCache prefetch (?P<outcome_text>success|dropped) req=(?P<rid_text>\S+) "
            r"completed(?:_local=(?P<local_tokens>\d+) completed_synced)?=(?P<completed_tokens>\d+) "
            r"matched=(?P<matched_tokens>\d+) loaded=(?P<loaded_tokens>\d+)(?: released=(?P<released_tokens>\d+))? "
            r"occupied=(?P<occupied_tokens>\d+)",
        ),
        ("Prefetching", "prefetch_begin", r"Prefetching (?P<pages>\d+) pages for request (?P<rid_text>\S+)"),
        (
            "Prefetch",
            "prefetch",
            r"Prefetch (?P<rid_text>\S+) completed with (?P<loaded_tokens>\d+) tokens",
        ),
        (
            "HiCache",
            "prefetch_declined",
            r"HiCache (?:buffer )?prefetch declined req=(?P<rid_text>[^\s:]+)(?: reason=(?P<reason_text>\w+))?",
        ),
        (
            "HiCache",
            "prefetch_cap",
            r"HiCache storage prefetch reissue cap reached req=(?P<rid_text>\S+) attempts=(?P<attempts>\d+)",
        ),
        ("Revoking", "prefetch_declined", r"Revoking prefetch for request (?P<rid_text>\S+) due to host memory"),
        ("Prefetch", "l3_error", r"Prefetch operation (?P<rid_text>\S+) failed to retrieve page"),
        ("HiCache", "l3_error", r"HiCache L3 prefetch failed for rid=(?P<rid_text>[^\s:]+): ?(?P<reason_text>[^;]*)"),
        ("HiCache", "l3_error", r"HiCache prefetch transfer failed for request (?P<rid_text>\S+)"),
        ("HiCache", "l3_error", r"HiCache backup failed after (?P<completed_tokens>\d+) tokens"),
        ("Creating", "storage", r"Creating storage backend '(?P<backend_text>\w+)'"),
        ("Attached", "storage", r"Attached HiCache storage backend: (?P<backend_text>\w+)"),
        ("Tree", "tree_cache", r"Tree cache initialized: .*?impl=(?P<class_text>\w+)"),
        ("Prefill", "pd_failed", rf"(?P<side_text>Prefill) (?P<phase_text>transfer|bootstrap){_REQUEST}"),
        ("Decode", "pd_failed", rf"(?P<side_text>Decode) (?P<phase_text>transfer|handshake){_REQUEST}"),
        (
            "Prefill",
            "pd_register_failed",
            r"Prefill register attempt (?P<attempt>\d+)/(?P<attempts>\d+) failed: (?P<reason_text>.*)",
        ),
        (
            "Prefill",
            "pd_register_gave_up",
            r"Prefill instance failed to register to bootstrap server after (?P<attempts>\d+) retries",
        ),
        ("Failed", "pd_info_failed", r"Failed to get prefill server info: (?P<status>\d+)"),
        (
            "Lost",
            "pd_lost",
            r"Lost connection with prefill instance(?: \(bootstrap_addr: (?P<address_text>[^)]*)\))?",
        ),
        (
            "Request",
            "pd_timeout",
            rf"Request (?P<room>\d+) timed out after (?P<elapsed_seconds>{_N})s in KVPoll\.(?P<phase_text>\w+)",
        ),
        ("Some", "pd_timeout", r"Some requests timed out when (?P<phase_text>\w+)"),
        ("Health", "health_failed", r"Health check failed\. Server couldn't get a response"),
        ("SIGTERM", "signal", r"(?P<signal_text>SIGTERM) received"),
        ("SIGQUIT", "signal", r"(?P<signal_text>SIGQUIT) received"),
        ("The", "ready", r"The server is fired up and ready to roll"),
        (
            "Unsupported",
            "jit_fallback",
            r"Unsupported element_size = (?P<row_bytes>\d+) for (?P<label_text>[\w -]*?)JIT HiCache kernel",
        ),
        ("Failed", "jit_fallback", r"Failed to load JIT HiCache kernel: (?P<reason_text>.*)"),
        ("set_mempolicy:", "numa_failed", r"set_mempolicy: (?P<reason_text>.*)"),
        ("setting", "numa_failed", r"setting membind: (?P<reason_text>.*)"),
        (
            "",
            "transport",
            r"(?:.*\] )?(?:Topology discovery complete\. Found (?P<hcas>\d+) HCAs|(?P<label_text>No RDMA devices found)"
            r"|(?P<transport_text>Tcp|Rdma)Transport: listen)",
        ),
        ("", "registration_failed", r"(?:.*\] )?(?:Failed to register memory |Mooncake memory registration failed)"),
    ]
)

_BY_WORD: dict[str, list[Wording]] = {}
for _wording in WORDINGS:
    _BY_WORD.setdefault(_wording.word, []).append(_wording)

# Of a message whose first word is not in the table, only one with one of these can be of interest.
_ANYWHERE = ("KV Cache ", "HCAs", "RDMA", "Transport: listen", "register memory", "memory registration")

# No wording is longer, and the patterns' time may grow with the square of the length.
_MAX_CHARACTERS = 2000

_ERROR_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt): ")
_NUMBER = re.compile(r"-?\d+(\.\d+)?\Z")
_GIANT = re.compile(r"\d{20}")
"""More than 64 bits, which no number of SGLang has; a bootstrap room has up to 19 digits."""


def match_message(message: str) -> tuple[str, dict[str, Any]] | None:
    """Kind and fields of a message that ranktop reads, None for any other."""
    message = message[:_MAX_CHARACTERS]
    word = message.partition(" ")[0]
    if word.endswith(":"):
        error = _ERROR_NAME.match(message)
        if error is not None:
            message = message[error.end() :]
            word = message.partition(" ")[0]
    if word.startswith("max_total_num_tokens="):
        word = "max_total_num_tokens="
    candidates = _BY_WORD.get(word, [])
    if any(stem in message for stem in _ANYWHERE):
        candidates = [*candidates, *_BY_WORD[""]]
    for wording in candidates:
        match = wording.pattern.match(message)
        if match is not None and not any(map(_is_giant, match.groupdict().items())):
            return wording.kind, _typed(match.groupdict())
    return None


def _is_giant(group: tuple[str, str | None]) -> bool:
    name, text = group
    return text is not None and not name.endswith("_text") and _GIANT.search(text) is not None


def _typed(groups: dict[str, str | None]) -> dict[str, Any]:
    """Fields by group name; `_text` marks one that stays text though it may look like a number."""
    fields: dict[str, Any] = {}
    for name, text in groups.items():
        if text is None:
            continue
        if name.endswith("_text"):
            fields[name.removesuffix("_text")] = text
        else:
            number = _NUMBER.match(text)
            fields[name] = text if number is None else float(text) if number[1] else int(text)
    return fields
