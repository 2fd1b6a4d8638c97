"""What two pages, a router and the log tell reaches the verdict and `check --json`."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ranktop.cli.documents import check_document, encode
from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import Event, MetricsPage, Sample, SeriesKey
from support import samples
from tests.reconcile.pages import page

ROUTER = "http://127.0.0.1:29000"
TOTALS = """*max_total_num_tokens{{engine_type="prefill",tp_rank="0"}} 5
    *num_running_reqs{{engine_type="prefill",tp_rank="0"}} 1
    *num_prefill_bootstrap_queue_reqs{{engine_type="prefill",tp_rank="0"}} 4
    *spec_accept_length{{tp_rank="0"}} 2.5
    *num_requests_total {requests}
    *evicted_tokens_total {evicted}"""


def router_page(at: float, *counts: float) -> MetricsPage:
    keys = tuple(
        SeriesKey("smg_http_request_duration_seconds_bucket", (("le", bound), ("path", "/generate")))
        for bound in ("1", "2", "+Inf")
    )
    return MetricsPage(ROUTER, at, 0.0, 0, keys, counts)


def at(seconds: float, requests: int, evicted: int, *counts: float) -> Sample:
    told = page(TOTALS.format(requests=requests, evicted=evicted), samples.START + seconds)
    read = Event(samples.START, "prefetch", "", samples.SERVER, "TP0", {"rid": "x", "loaded_tokens": 64})
    return replace(
        samples.healthy(seconds),
        metrics={samples.SERVER: told},
        routers={ROUTER: router_page(samples.START + seconds, *counts)},
        events=() if seconds else (read,),
    )


def judged() -> Verdict:
    reconciler = Reconciler()
    reconciler.update(at(0.0, 10, 800, 50, 50, 50))
    return reconciler.update(at(5.0, 20, 1600, 50, 60, 60))


def test_the_verdict_carries_them() -> None:
    server = judged().servers[0]
    assert server.load.requests_per_second == 2.0
    assert server.acceptance.length_tokens == 2.5
    assert server.traffic.evicted_tokens_per_second == 800 / 5 / 8, "eight ranks add to one series"
    assert server.handoff.queues == {"num_prefill_bootstrap_queue_reqs": 4}
    assert server.prefetches[0].loaded_tokens == 64
    assert judged().routers[ROUTER].p50 == 1.5


def test_a_second_without_a_new_page_keeps_what_the_pages_told() -> None:
    reconciler = Reconciler()
    reconciler.update(at(0.0, 10, 800, 50, 50, 50))
    second = at(5.0, 20, 1600, 50, 60, 60)
    before = reconciler.update(second)
    after = reconciler.update(replace(second, at_monotonic_seconds=second.at_monotonic_seconds + 1))
    assert after.servers[0].load == before.servers[0].load
    assert after.routers == before.routers


def test_without_processes_the_ranks_are_those_of_the_page() -> None:
    constants = "".join(f'\n*max_total_num_tokens{{tp_rank="{tp}"}} 5' for tp in range(8))
    reconciler = Reconciler(sglang="0.5.18")
    for second, evicted in ((0.0, 800), (10.0, 1600)):
        told = page(f"*evicted_tokens_total {evicted}{constants}", second)
        verdict = reconciler.update(Sample(second, second, "node-a", metrics={"page.prom": told}))
    server = verdict.servers[0]
    assert (server.ranks, server.traffic.evicted_tokens_per_second) == (8, 10.0)
    line = verdict.ranks[0].line("rate.evict")
    assert (line.seen, line.group) == (10.0, True)


def test_check_json_has_them() -> None:
    document = msgspec.json.decode(encode(check_document(judged(), 5.0)))
    server = document["servers"][0]
    assert server["load"]["requests_per_second"] == 2.0
    assert server["handoff"]["ranks"]["0/0/0"] == {"mean_milliseconds": None, "mean_gib_per_second": None}
    assert server["traffic"]["evicted_tokens_per_second"] == 20.0
    assert server["acceptance"]["length_tokens"] == 2.5
    assert server["prefetches"][0]["request"] == "x"
    assert document["routers"] == {ROUTER: {"p50": 1.5, "p95": 1.95, "p99": 1.99}}
