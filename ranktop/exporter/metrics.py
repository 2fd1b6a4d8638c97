"""Every metric that the exporter has: name, labels, help. The page, the reference and the dashboards go by this table.

Names follow https://prometheus.io/docs/practices/naming/: one unit a name, base units, ratios 0..1. What was not seen
has no series; it is never 0. Labels take values from small fixed sets, or name a server, a rank or a source of this
node; no metric carries a message.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PREFIX = "ranktop_"


class Metric(Struct, frozen=True):
    """One gauge."""

    name: str
    labels: tuple[str, ...]
    help: str


Scope = Literal["rank", "node"]
Value = Literal["seen", "planned", "difference"]

SCOPES: dict[Scope, tuple[str, ...]] = {"rank": ("server", "rank", "line"), "node": ("line",)}

UNITS: dict[str, tuple[str, float]] = {
    "bytes": ("_bytes", 1.0),
    "tokens": ("_tokens", 1.0),
    "percent": ("_ratio", 0.01),
    "ratio": ("_ratio", 1.0),
    "seconds": ("_seconds", 1.0),
    "bytes_per_second": ("_bytes_per_second", 1.0),
    "tokens_per_second": ("_tokens_per_second", 1.0),
    "count": ("", 1.0),
}
"""Unit of a line -> suffix of its metric, and what its values are multiplied by."""

_VALUES: dict[Value, str] = {
    "seen": "What was read of a line of the {scope}",
    "planned": "What the launch should take, by the plan",
    "difference": "Seen minus planned",
}


def line_metric(scope: Scope, value: Value, unit: str) -> str:
    """The metric of a line's value: `ranktop_rank_seen_bytes`."""
    return f"{PREFIX}{scope}_{value}{UNITS[unit][0]}"


def _line_metrics() -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for scope, labels in SCOPES.items():
        for value, what in _VALUES.items():
            for unit in UNITS:
                name = line_metric(scope, value, unit)
                words = UNITS[unit][0].lstrip("_").replace("_", " ") or "a number without unit"
                found[name] = Metric(name, labels, f"{what.format(scope=scope)}, by line name; {words}")
        name = f"{PREFIX}{scope}_status"
        found[name] = Metric(name, labels, "Lines with a plan: 0 ok, 1 over, -1 under; absent while unknown")
    return found


LINES = _line_metrics()

BUILD = Metric("ranktop_build_info", ("version",), "Always 1; the version of ranktop")
SERVER = Metric(
    "ranktop_server_info",
    (
        "server",
        "version",
        "model",
        "role",
        "tp_size",
        "dp_size",
        "page_size",
        "kv_cache_dtype",
        "write_policy",
        "mem_layout",
        "storage_backend",
    ),
    "Always 1; what a server was launched with, empty where it is not known",
)
RANK = Metric(
    "ranktop_rank_info", ("server", "rank", "pid", "gpu", "numa"), "Always 1; GPU index (NVML) and its NUMA node"
)
READY = Metric("ranktop_server_ready", ("server",), "1 once the server has said that it is ready, 0 before")
STARTED = Metric("ranktop_server_start_timestamp_seconds", ("server",), "When the server's main process started")
FINDING = Metric(
    "ranktop_finding",
    ("code", "severity", "server", "rank"),
    "1 while a finding is open; a finding of several ranks has a series a rank; server and rank are empty for the node",
)
SINCE = Metric(
    "ranktop_finding_since_timestamp_seconds",
    FINDING.labels,
    "When a finding opened",
)
SEVERITY = Metric("ranktop_severity", (), "Worst open finding: 0 none, 1 info, 2 warn, 3 breach, 4 critical")
WITHIN_PLAN = Metric(
    "ranktop_within_plan_since_timestamp_seconds", (), "Since when nothing above info was open; absent otherwise"
)
TIER = Metric(
    "ranktop_tier_share_ratio",
    ("server", "tier"),
    "Share of prefill tokens that came from a tier (device, host, storage) or from none (miss), over the last pages",
)
TRANSFER = Metric(
    "ranktop_transfer_bytes_per_second",
    ("server", "direction"),
    "Bytes moved between tiers: backup L1 to L2, load_back L2 to L1, prefetch L3 to L2",
)
LATENCY = Metric(
    "ranktop_service_latency_seconds",
    ("server", "stage", "percentile"),
    "Percentile (p50, p95, p99) over the last pages, by stage: ttft, inter_token, e2e",
)
THROUGHPUT = Metric("ranktop_service_tokens_per_second", ("server",), "Generated tokens a second")
REQUESTS = Metric("ranktop_service_requests", ("server", "state"), "Requests running, queued, http_active")
SOURCE_UP = Metric(
    "ranktop_source_up",
    ("source", "server"),
    "1 when a source answers, 0 when it fails or is late; absent when this host has no such source",
)
SOURCE_AGE = Metric("ranktop_source_age_seconds", ("source", "server"), "Age of a source's last value")
SOURCE_TOOK = Metric("ranktop_source_read_seconds", ("source", "server"), "What its last read took")
SAMPLED = Metric("ranktop_sample_timestamp_seconds", (), "When the sample behind this page was taken")

METRICS: tuple[Metric, ...] = (
    BUILD,
    SAMPLED,
    SEVERITY,
    WITHIN_PLAN,
    FINDING,
    SINCE,
    SERVER,
    READY,
    STARTED,
    RANK,
    *LINES.values(),
    TIER,
    TRANSFER,
    LATENCY,
    THROUGHPUT,
    REQUESTS,
    SOURCE_UP,
    SOURCE_AGE,
    SOURCE_TOOK,
)
"""In the order of the page."""
