"""The bootstrap server's read-only routes, as `_handle_route_get` of SGLang answers them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from collectors.bootstrap import NOT_READY_SECONDS, READY_SECONDS, BootstrapCollector, bootstrap_url
from ranktop.sample import NoData, Processes, RankProcess, RankTag, ServerProcess, SourceError
from tests.collectors.sglang_stub import Stub, stub_server

TOPOLOGY = {
    "attn_tp_size": 1,
    "attn_cp_size": 4,
    "dp_size": 1,
    "pp_size": 1,
    "page_size": 64,
    "kv_cache_dtype": "fp8_e4m3",
    "follow_bootstrap_room": True,
    "enable_dsa_cache_layer_split": True,
    "prefill_http_port": 30000,
}


@contextmanager
def bootstrap_server(registered: set[int], counted: int | None = None) -> Iterator[Stub]:
    with stub_server({}) as stub:

        def answer(path: str) -> tuple[int, bytes]:
            query = {name: int(values[0]) for name, values in parse_qs(urlsplit(path).query).items()}
            if counted is not None:
                return 503, f"Prefill server not fully registered yet ({counted} workers registered).".encode()
            if query["prefill_cp_rank"] == -1:
                return 200, json.dumps(TOPOLOGY).encode()
            if query["prefill_cp_rank"] in registered:
                return 200, json.dumps({"rank_ip": "10.0.0.1", "rank_port": 5000 + query["prefill_cp_rank"]}).encode()
            return 404, b"Bootstrap info not found for dp_rank=0"

        stub.answer = answer
        yield stub


def test_all_ranks_registered() -> None:
    with bootstrap_server({0, 1, 2, 3}) as stub:
        collector = BootstrapCollector("a:1", stub.url)
        found = collector.read(None, 0.0)
    assert (found.is_ready, found.registered_ranks, found.expected_ranks) == (True, 4, 4)
    assert (found.page_size, found.kv_cache_dtype, found.layer_split) == (64, "fp8_e4m3", True)
    assert [rank.address for rank in found.ranks] == [f"10.0.0.1:{5000 + cp}" for cp in range(4)]
    assert collector.period_seconds == READY_SECONDS


def test_a_rank_registered_twice_does_not_hide_one_that_never_did() -> None:
    with bootstrap_server({0, 1, 3}) as stub:
        found = BootstrapCollector("a:1", stub.url).read(None, 0.0)
    assert (found.is_ready, found.registered_ranks, found.expected_ranks) == (True, 3, 4)
    assert [rank.cp for rank in found.ranks if rank.is_registered is False] == [2]


def processes(*argv: str) -> Processes:
    main = ServerProcess(id="a:1", pid=1, start_ticks=1, argv=argv, url="http://127.0.0.1:30000")
    ranks = tuple(
        RankProcess(server="a:1", tag=RankTag(cp=cp, tp=cp), pid=10 + cp, start_ticks=1, state="S") for cp in range(4)
    )
    return Processes(servers=(main,), ranks=ranks)


def test_before_ready_only_the_count_is_known() -> None:
    with bootstrap_server(set(), counted=3) as stub:
        collector = BootstrapCollector("a:1", stub.url)
        found = collector.read(processes(), 0.0)
    assert (found.is_ready, found.registered_ranks, found.expected_ranks, found.ranks) == (False, 3, 4, ())
    assert collector.period_seconds == NOT_READY_SECONDS
    assert [path for path, _ in stub.asked] == [
        "/route?prefill_dp_rank=-1&prefill_cp_rank=-1&target_tp_rank=-1&target_pp_rank=-1"
    ]


def test_the_address_comes_from_the_command_line() -> None:
    prefill = processes("python", "--disaggregation-mode", "prefill", "--disaggregation-bootstrap-port=9000")
    assert bootstrap_url(prefill, "a:1") == "http://127.0.0.1:9000"
    assert bootstrap_url(processes("python", "--disaggregation-mode", "prefill"), "a:1") == "http://127.0.0.1:8998"


@pytest.mark.parametrize(
    ("known", "code"),
    [
        (None, "no_process"),
        (processes("python"), "not_prefill"),
        (processes("python", "--disaggregation-mode", "decode"), "not_prefill"),
    ],
)
def test_no_bootstrap_here(known: Processes | None, code: str) -> None:
    with pytest.raises(NoData) as caught:
        BootstrapCollector("a:1").read(known, 0.0)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((200, b"hello"), "bad_answer"),
        ((200, b"[1]"), "bad_answer"),
        ((404, b""), "http_404"),
        ((500, b""), "http_500"),
    ],
)
def test_not_a_bootstrap_port(answer: tuple[int, bytes], code: str) -> None:
    with stub_server({"/route": answer}) as stub, pytest.raises(SourceError) as caught:
        BootstrapCollector("a:1", stub.url).read(None, 0.0)
    assert caught.value.code == code


def test_a_hostile_topology_is_bounded() -> None:
    sizes = {"attn_tp_size": 10**9, "attn_cp_size": -3, "dp_size": "x", "pp_size": None}
    with stub_server({"/route": (200, json.dumps(sizes).encode())}) as stub:
        assert len(BootstrapCollector("a:1", stub.url).read(None, 0.0).ranks) == 1
