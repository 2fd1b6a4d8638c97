"""`/v1/loads`: a shared-memory snapshot, one entry a DP rank. The cheapest live view; needs no --enable-metrics.

On 0.5.18 it freezes together with the gauges while a PD bootstrap queue is not empty.
"""

from __future__ import annotations

from typing import Any

import msgspec

from collectors.http import bearer, failure, get
from collectors.json_values import number, whole
from ranktop.sample import LoadSnapshot, Processes, SourceError

_DEADLINE_SECONDS = 5.0
_QUERY = "include=core,memory,spec,disagg,queues"
_MAX_ENTRIES = 4096


class LoadsCollector:
    """Reads one server's load snapshots."""

    name = "loads"
    part = "loads"

    def __init__(self, server: str, url: str, period_seconds: float = 5.0) -> None:
        self.server: str | None = server
        self._id = server
        self._url = url.rstrip("/")
        self.period_seconds = period_seconds

    def read(self, processes: Processes | None, now: float) -> tuple[LoadSnapshot, ...]:
        """One snapshot a DP rank. Raises SourceError with the code of what came back."""
        answer = get(f"{self._url}/v1/loads?{_QUERY}", headers=bearer(), deadline_seconds=_DEADLINE_SECONDS)
        if answer.status != 200:
            raise failure(answer)
        try:
            return parse(self._id, msgspec.json.decode(answer.body))
        except (msgspec.DecodeError, RecursionError):
            raise SourceError(
                f"GET {answer.url}: 200, but not JSON: is this SGLang's HTTP port?", "bad_answer"
            ) from None


def parse(server: str, envelope: Any) -> tuple[LoadSnapshot, ...]:
    """Snapshots from the decoded answer (`{timestamp, version, loads: [...]}` of 0.5.18 and 0.5.23), by dp_rank."""
    entries = envelope.get("loads") if isinstance(envelope, dict) else None
    if not isinstance(entries, list):
        raise SourceError("/v1/loads: 200, but no list `loads` in it (an SGLang before 0.5.14?)", "bad_answer")
    found = [_snapshot(server, entry) for entry in entries[:_MAX_ENTRIES] if isinstance(entry, dict)]
    return tuple(sorted(found, key=lambda snapshot: snapshot.dp_rank))


def _snapshot(server: str, entry: dict[str, Any]) -> LoadSnapshot:
    memory, speculative = _section(entry, "memory"), _section(entry, "speculative")
    disaggregation, queues = _section(entry, "disaggregation"), _section(entry, "queues")
    mode = disaggregation.get("mode")
    return LoadSnapshot(
        server=server,
        dp_rank=whole(entry.get("dp_rank")) or 0,
        # 0 is SGLang's default of a slot that no scheduler has written yet.
        at_unix_seconds=number(entry.get("timestamp")) or None,
        running_requests=whole(entry.get("num_running_reqs")),
        waiting_requests=whole(entry.get("num_waiting_reqs")),
        used_tokens=whole(entry.get("num_used_tokens")),
        capacity_tokens=whole(entry.get("max_total_num_tokens")),
        token_usage_ratio=number(entry.get("token_usage")),
        generation_tokens_per_second=number(entry.get("gen_throughput")),
        weight_gib=number(memory.get("weight_gb")),
        kv_cache_gib=number(memory.get("kv_cache_gb")),
        graph_gib=number(memory.get("graph_gb")),
        accept_length=number(speculative.get("accept_length")),
        accept_ratio=number(speculative.get("accept_rate")),
        mode=mode if isinstance(mode, str) else None,
        bootstrap_queue_requests=whole(disaggregation.get("prefill_bootstrap_queue_reqs")),
        inflight_queue_requests=whole(disaggregation.get("prefill_inflight_queue_reqs")),
        prealloc_queue_requests=whole(disaggregation.get("decode_prealloc_queue_reqs")),
        transfer_queue_requests=whole(disaggregation.get("decode_transfer_queue_reqs")),
        paused_requests=whole(queues.get("paused")),
        retracted_requests=whole(queues.get("retracted")),
    )


def _section(entry: dict[str, Any], name: str) -> dict[str, Any]:
    section = entry.get(name)
    return section if isinstance(section, dict) else {}
