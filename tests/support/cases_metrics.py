"""Cases of the case log on the metrics page (kind 4), with inputs of the project's own."""

from __future__ import annotations

from support.inspect_case import Case, Code, Seen
from support.node_text import page

ROLE = 'engine_type="unified",model_name="glm"'


def scrape(answer: str) -> dict[str, str | bytes]:
    """A server's access log with one scrape."""
    return {"access.log": f'INFO:     192.0.2.133:59894 - "GET /metrics HTTP/1.1" {answer}\n'}


def dp2_tp4() -> str:
    """Two DP groups of two ranks: every rank repeats its group's gauges."""
    series: dict[str, float | str] = {}
    for dp, tp, running, used in ((0, 0, 2, 3_000_000), (0, 1, 2, None), (1, 2, 0, 2_000_000), (1, 3, 0, None)):
        labels = f'{{dp_rank="{dp}",{ROLE},tp_rank="{tp}"}}'
        series[f"sglang:num_running_reqs{labels}"] = running
        if used is not None:
            series[f"sglang:hicache_host_used_tokens{labels}"] = used
            series[f"sglang:hicache_host_total_tokens{labels}"] = 3_908_736
            series[f"sglang:cache_hit_rate{labels}"] = 0.0
    series[f'sglang:cached_tokens_total{{cache_source="device",{ROLE}}}'] = 850
    series[f"sglang:prompt_tokens_total{{{ROLE}}}"] = 1000
    return page(series)


CASES = (
    Case(
        57,
        "the gauge says 0, the counters say 90 %",
        {
            "metrics.prom": page(
                {
                    f'sglang:cache_hit_rate{{{ROLE},tp_rank="0"}}': 0.0,
                    f'sglang:cached_tokens_total{{cache_source="device",{ROLE}}}': 900,
                    f"sglang:prompt_tokens_total{{{ROLE}}}": 1000,
                }
            )
        },
        holds=lambda found: found.verdict.tiers.device_hit == 0.9,
    ),
    Case(
        59,
        "a gauge that stands while nothing decodes",
        not_shown="a timeline of a gauge, not of pages: METRICS-STALE needs pages and open work over time, and is "
        "tested on samples (tests/reconcile)",
    ),
    Case(
        61,
        "the underscore prefix and a gateway's labels",
        {
            "metrics.prom": page(
                {
                    f'sglang_num_running_reqs{{{ROLE},moe_ep_rank="0",pp_rank="0",tp_rank="0",'
                    'worker_addr="grpc://127.0.0.1:8001"}': 1,
                    f'sglang_max_total_num_tokens{{{ROLE},pp_rank="0",tp_rank="0",'
                    'worker_addr="grpc://127.0.0.1:8001"}': 540_928,
                }
            )
        },
        lines=(Seen("TP0", "l1.tokens", 540_928), Seen("", "requests.running", 1)),
    ),
    Case(
        62,
        "TP ranks repeat their DP group and are not added",
        {"metrics.prom": dp2_tp4()},
        lines=(Seen("DP0 TP0", "l2.used", 3_000_000), Seen("", "requests.running", 2)),
        holds=lambda found: (
            found.verdict.tiers.device_hit == 0.85
            and [rank.rank for rank in found.verdict.ranks] == ["DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3"]
        ),
    ),
    Case(
        65,
        "an old page says what it lacks",
        {
            "metrics.prom": page(
                {
                    f'sglang:num_running_reqs{{{ROLE},pp_rank="0",tp_rank="0"}}': 1.0,
                    f'sglang:token_usage{{{ROLE},pp_rank="0",tp_rank="0"}}': 0.0,
                }
            )
        },
        lines=(Seen("TP0", "l2.used", None, status="unknown"), Seen("", "requests.running", 1)),
        holds=lambda found: found.verdict.tiers.device_hit is None and found.verdict.servers[0].tiers.detail,
    ),
    Case(
        67,
        "scrape time over thousands of metric files",
        not_shown="a listing of a folder: what a scrape takes is measured live (METRICS-TIMEOUT, and the cadence that "
        "follows the response time), and no file tells it",
    ),
    Case(68, "404: metrics are off", scrape("404 Not Found"), codes=(Code("METRICS-OFF", "warn"),)),
    Case(68, "307: a redirect", scrape("307 Temporary Redirect"), codes=(Code("METRICS-REDIRECT", "warn"),)),
    Case(68, "401: a key is asked for", scrape("401 Unauthorized"), codes=(Code("METRICS-AUTH", "warn"),)),
    Case(
        68,
        "a redirect that was followed is no failure",
        {"access.log": scrape("307 Temporary Redirect")["access.log"] + scrape("200 OK")["access.log"]},  # type: ignore[operator]
        never=("METRICS-REDIRECT",),
    ),
    Case(
        69,
        "NaN is no sample",
        {
            "metrics.prom": page(
                {
                    'sglang:num_running_reqs{tp_rank="0"}': 0,
                    'sglang:fwd_occupancy{tp_rank="0"}': "NaN",
                    'sglang:kv_used_tokens{tp_rank="0"}': "NaN",
                }
            )
        },
        lines=(Seen("TP0", "l1.used", None, status="unknown"),),
    ),
    Case(
        86,
        "DCGM's blank value is no number",
        {
            "metrics.prom": page(
                {
                    'sglang:num_running_reqs{tp_rank="0"}': 0,
                    'sglang:kv_used_tokens{tp_rank="0"}': "9223372036854775794",
                }
            )
        },
        lines=(Seen("TP0", "l1.used", None, status="unknown"),),
    ),
)
