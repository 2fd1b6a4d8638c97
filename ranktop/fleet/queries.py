"""The PromQL of the fleet. Plain enough for Thanos, Mimir and VictoriaMetrics: no subqueries, no `@`, no experiments.

The overview is one request: every metric is aggregated by the server to a few series a node, and the parts are joined
by `or` under a label that names them. A request costs its client 1.4 ms, a row 3 us (`tests/bench/bench_fleet.py`).
Only an opened node is read rank by rank.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

PART = "ranktop_part"
"""The label that says which part of a joined answer a row belongs to."""

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_MATCHER = re.compile(r'\s*[a-zA-Z_][a-zA-Z0-9_]*\s*(=|!=|=~|!~)\s*"(?:[^"\\\n]|\\.)*"\s*')
_RATE_WINDOW = "5m"
_GONE_WINDOW = "1h"


class ScopeError(ValueError):
    """A selector or a label that is none."""


class Scope(Struct, frozen=True):
    """Which nodes: `selector` holds matchers without braces (`cluster="a", job!="test"`), `group` a target's label."""

    selector: str = ""
    group: str | None = None

    def __post_init__(self) -> None:
        """Raises ScopeError: what stands in a query must be what it claims to be."""
        rest = self.selector
        while rest:
            match = _MATCHER.match(rest)
            if match is None or (match.end() < len(rest) and rest[match.end()] != ","):
                raise ScopeError(f'selector {self.selector!r}: not matchers (like cluster="a", env!="test")')
            rest = rest[match.end() + 1 :]
        if self.group is not None and not _LABEL.fullmatch(self.group):
            raise ScopeError(f"group label {self.group!r}: not the name of a label")


def overview_query(scope: Scope) -> str:
    """Everything of the overview that exporters tell, and which targets have SGLang's own series."""
    by = _by(scope)
    info = "instance, server, version, model, role, tp_size, page_size, kv_cache_dtype, storage_backend"
    severity = _of("ranktop_severity", scope)

    def folded(how: str, labels: str, metric: str, *matchers: str) -> str:
        return f"{how} by ({labels}) ({_of(metric, scope, *matchers)})"

    host = 'line=~"host.total|host.available|host.pools"'
    parts = {
        "severity": f"max by ({by}) ({severity})",
        "gone": f"max by ({by}) (max_over_time({severity}[{_GONE_WINDOW}])) unless on (instance) {severity}",
        "findings": folded("count", "instance, code, severity", "ranktop_finding", 'severity!="info"'),
        "servers": folded("max", info, "ranktop_server_info"),
        "host": folded("max", "instance, line", "ranktop_node_seen_bytes", host),
        "pressure": folded("max", "instance", "ranktop_node_seen_ratio", 'line="host.pressure"'),
        "hbm_free": folded("min", "instance", "ranktop_rank_seen_bytes", 'line="hbm.free"'),
        "l2": folded("sum", "instance, line", "ranktop_rank_seen_tokens", 'line=~"l2.used|l2.total"'),
        "tiers": folded("avg", "instance, tier", "ranktop_tier_share_ratio"),
        "ttft": folded("max", "instance", "ranktop_service_latency_seconds", 'stage="ttft"', 'percentile="p95"'),
        "requests": folded("sum", "instance, state", "ranktop_service_requests", 'state=~"running|queued"'),
        "sglang": f"count by ({by}) ({_sglang('num_running_reqs', scope)})",
    }
    return _joined(parts)


def sglang_query(scope: Scope) -> str:
    """Tiers and service from SGLang's series alone.

    Ranks of one DP group carry copies of a gauge, so copies are folded by max and groups summed.
    """

    def gauge(name: str) -> str:
        return f"sum by (instance) (max by (instance, dp_rank) ({_sglang(name, scope)}))"

    def gained(name: str, by: str) -> str:
        return f"sum by ({by}) (rate({_sglang(name, scope)}[{_RATE_WINDOW}]))"

    buckets = gained("time_to_first_token_seconds_bucket", "instance, le")
    parts = {
        "running": gauge("num_running_reqs"),
        "queued": gauge("num_queue_reqs"),
        "l2_used": gauge("hicache_host_used_tokens"),
        "l2_total": gauge("hicache_host_total_tokens"),
        "cached": gained("cached_tokens_total", "instance, cache_source"),
        "prompt": gained("prompt_tokens_total", "instance"),
        "ttft": f"histogram_quantile(0.95, {buckets})",
    }
    return _joined(parts)


def node_query(instance: str, scope: Scope) -> str:
    """Every series of one exporter."""
    return "{" + ", ".join(_matchers(scope, '__name__=~"ranktop_.+"', f"instance={quoted(instance)}")) + "}"


def severity_query(scope: Scope, instance: str | None = None) -> str:
    """The worst severity, for the strip."""
    own = () if instance is None else (f"instance={quoted(instance)}",)
    return f"max ({_of('ranktop_severity', scope, *own)})"


def quoted(text: str) -> str:
    """A label value as PromQL writes it."""
    return '"' + text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'


def _joined(parts: Mapping[str, str]) -> str:
    return " or ".join(f'label_replace({query}, "{PART}", "{name}", "", "")' for name, query in parts.items())


def _by(scope: Scope) -> str:
    return "instance" if scope.group is None else f"instance, {scope.group}"


def _of(metric: str, scope: Scope, *matchers: str) -> str:
    told = ", ".join(_matchers(scope, *matchers))
    return f"{metric}{{{told}}}" if told else metric


def _sglang(name: str, scope: Scope) -> str:
    """Both spellings: Prometheus asks for OpenMetrics, in which SGLang's colon becomes an underscore."""
    return "{" + ", ".join(_matchers(scope, f'__name__=~"sglang[:_]{name}"')) + "}"


def _matchers(scope: Scope, *own: str) -> list[str]:
    return [*own, scope.selector.strip()] if scope.selector.strip() else list(own)
