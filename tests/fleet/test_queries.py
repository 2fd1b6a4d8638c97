"""The PromQL of the fleet, evaluated by Prometheus itself on ranks, servers and groups that differ."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from ranktop.fleet.queries import PART, Scope, overview_query, severity_query, sglang_query

pytestmark = pytest.mark.tools("promtool")

SERIES = {
    'ranktop_severity{instance="a", cluster="x"}': "2x10",
    'ranktop_severity{instance="b", cluster="x"}': "3 3 stale",
    'ranktop_finding{instance="a", code="NUMA-REMOTE", severity="warn", server="s", rank="TP0"}': "1x10",
    'ranktop_finding{instance="a", code="NUMA-REMOTE", severity="warn", server="s", rank="TP1"}': "1x10",
    'ranktop_finding{instance="a", code="L2-PROVEN", severity="info", server="s"}': "1x10",
    'ranktop_server_info{instance="a", server="s", version="0.5.18", model="m", dp_size="1"}': "1x10",
    'ranktop_node_seen_bytes{instance="a", line="host.total"}': "1000x10",
    'ranktop_node_seen_bytes{instance="a", line="host.available"}': "400x10",
    'ranktop_node_seen_bytes{instance="a", line="host.cgroup"}': "9x10",
    'ranktop_node_seen_ratio{instance="a", line="host.pressure"}': "0.25x10",
    'ranktop_rank_seen_bytes{instance="a", line="hbm.free", rank="TP0"}': "7x10",
    'ranktop_rank_seen_bytes{instance="a", line="hbm.free", rank="TP1"}': "5x10",
    'ranktop_rank_seen_bytes{instance="a", line="hbm.process", rank="TP1"}': "1x10",
    'ranktop_rank_seen_tokens{instance="a", line="l2.used", rank="TP0"}': "30x10",
    'ranktop_rank_seen_tokens{instance="a", line="l2.used", rank="TP1"}': "50x10",
    'ranktop_rank_seen_tokens{instance="a", line="l2.total", rank="TP0"}': "100x10",
    'ranktop_rank_seen_tokens{instance="a", line="l2.total", rank="TP1"}': "100x10",
    'ranktop_tier_share_ratio{instance="a", server="s", tier="host"}': "0.25x10",
    'ranktop_tier_share_ratio{instance="a", server="t", tier="host"}': "0.75x10",
    'ranktop_service_latency_seconds{instance="a", server="s", stage="ttft", percentile="p95"}': "1x10",
    'ranktop_service_latency_seconds{instance="a", server="t", stage="ttft", percentile="p95"}': "3x10",
    'ranktop_service_latency_seconds{instance="a", server="t", stage="ttft", percentile="p99"}': "8x10",
    'ranktop_service_latency_seconds{instance="a", server="t", stage="e2e", percentile="p95"}': "9x10",
    'ranktop_service_requests{instance="a", server="s", state="running"}': "2x10",
    'ranktop_service_requests{instance="a", server="t", state="running"}': "3x10",
    'ranktop_service_requests{instance="a", server="t", state="http_active"}': "7x10",
    # SGLang's own: two ranks of one group carry copies, another group has its own.
    'sglang:num_running_reqs{instance="c", dp_rank="0", tp_rank="0"}': "4x10",
    'sglang:num_running_reqs{instance="c", dp_rank="0", tp_rank="1"}': "4x10",
    'sglang:num_running_reqs{instance="c", dp_rank="1", tp_rank="2"}': "2x10",
    'sglang_num_queue_reqs{instance="c", dp_rank="0"}': "6x10",
    'sglang:hicache_host_used_tokens{instance="c", dp_rank="0"}': "10x10",
    'sglang:hicache_host_total_tokens{instance="c", dp_rank="0"}': "40x10",
    'sglang:cached_tokens_total{instance="c", cache_source="host"}': "0+60x10",
    'sglang:prompt_tokens_total{instance="c"}': "0+120x10",
    'sglang:time_to_first_token_seconds_bucket{instance="c", le="1"}': "0+60x10",
    'sglang:time_to_first_token_seconds_bucket{instance="c", le="2"}': "0+60x10",
    'sglang:time_to_first_token_seconds_bucket{instance="c", le="+Inf"}': "0+60x10",
}


def check(folder: Path, query: str, expected: dict[str, float]) -> None:
    """The query gives these samples and no other, five minutes into the series."""
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in SERIES.items()],
            "promql_expr_test": [
                {
                    "expr": query,
                    "eval_time": "5m",
                    "exp_samples": [{"labels": labels, "value": value} for labels, value in expected.items()],
                }
            ],
        }
    ]
    (folder / "test.yml").write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": tests}))
    ran = subprocess.run(["promtool", "test", "rules", folder / "test.yml"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def part(name: str, labels: str) -> str:
    return f'{{{labels}, {PART}="{name}"}}'


def test_the_overview_folds_ranks_and_servers(tmp_path: Path) -> None:
    check(
        tmp_path,
        overview_query(Scope(group="cluster")),
        {
            part("severity", 'instance="a", cluster="x"'): 2,
            part("gone", 'instance="b", cluster="x"'): 3,
            part("findings", 'instance="a", code="NUMA-REMOTE", severity="warn"'): 2,
            part("servers", 'instance="a", server="s", version="0.5.18", model="m"'): 1,
            part("host", 'instance="a", line="host.total"'): 1000,
            part("host", 'instance="a", line="host.available"'): 400,
            part("pressure", 'instance="a"'): 0.25,
            part("hbm_free", 'instance="a"'): 5,
            part("l2", 'instance="a", line="l2.used"'): 80,
            part("l2", 'instance="a", line="l2.total"'): 200,
            part("tiers", 'instance="a", tier="host"'): 0.5,
            part("ttft", 'instance="a"'): 3,
            part("requests", 'instance="a", state="running"'): 5,
            part("sglang", 'instance="c"'): 3,
        },
    )


def test_sglang_alone_counts_a_group_once(tmp_path: Path) -> None:
    check(
        tmp_path,
        sglang_query(Scope()),
        {
            part("running", 'instance="c"'): 6,
            part("queued", 'instance="c"'): 6,
            part("l2_used", 'instance="c"'): 10,
            part("l2_total", 'instance="c"'): 40,
            part("cached", 'instance="c", cache_source="host"'): 1,
            part("prompt", 'instance="c"'): 2,
            part("ttft", 'instance="c"'): 0.95,
        },
    )


def test_the_strip_is_of_the_worst(tmp_path: Path) -> None:
    check(tmp_path, severity_query(Scope()), {"{}": 2})
    check(tmp_path, severity_query(Scope(), "a"), {"{}": 2})
    check(tmp_path, severity_query(Scope('cluster="y"')), {})
