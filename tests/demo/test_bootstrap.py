"""The stand-in's bootstrap server as ranktop's collector reads it, over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from collectors.bootstrap import BootstrapCollector
from ranktop.demo.bootstrap import route
from ranktop.demo.endpoints import Endpoints
from ranktop.demo.scenarios import find_scenario
from ranktop.demo.serverinfo import server_args


@contextmanager
def served(scenario: str) -> Iterator[str]:
    """The URL of that scenario's bootstrap server."""
    found = find_scenario(scenario)
    assert found is not None
    endpoints = Endpoints(0)
    endpoints.open({"/route": route(server_args(30000, found.launch, found.args), found.unregistered)})
    try:
        yield f"http://127.0.0.1:{endpoints.port}"
    finally:
        endpoints.close()


@pytest.mark.parametrize(
    ("scenario", "places", "is_split"),
    [
        ("pd-stuck", [(0, 0, tp, 0) for tp in range(8)], False),
        ("layer-overlap", [(0, cp, 0, 0) for cp in range(8)], True),
    ],
)
def test_every_rank_has_an_address_once_all_have_registered(
    scenario: str, places: list[tuple[int, ...]], is_split: bool
) -> None:
    with served(scenario) as url:
        found = BootstrapCollector("server", url).read(None, 0.0)
    assert (found.is_ready, found.registered_ranks, found.expected_ranks, found.layer_split) == (True, 8, 8, is_split)
    assert [(rank.dp, rank.cp, rank.tp, rank.pp) for rank in found.ranks] == places
    assert len({rank.address for rank in found.ranks if rank.is_registered}) == 8


def test_while_one_is_missing_only_their_count_is_told() -> None:
    with served("pd-rank-missing") as url:
        found = BootstrapCollector("server", url).read(None, 0.0)
    assert (found.is_ready, found.registered_ranks, found.ranks) == (False, 7, ())


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("?prefill_dp_rank=0&prefill_cp_rank=0&target_tp_rank=8&target_pp_rank=0", 404)],
)
def test_what_nobody_registered_is_not_found(query: str, status: int) -> None:
    with served("pd-stuck") as url, pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(f"{url}/route{query}", timeout=5)
    assert told.value.code == status
