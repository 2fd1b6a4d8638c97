"""The bootstrap server of a stand-in prefill node: which of its ranks decode nodes can reach.

`disaggregation/common/conn.py` of SGLang 0.5.18: `GET /route` of rank -1 is 503 with a count until all have registered,
then the topology; of one rank it is then its address, or 404.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qs

from ranktop.demo.endpoints import Page, Reply
from ranktop.demo.launch import HOST, PAGE_TOKENS

_FIRST_RANK_PORT = 41000
_PLACE = ("prefill_dp_rank", "prefill_cp_rank", "target_tp_rank", "target_pp_rank")


def route(args: Mapping[str, Any], missing: Collection[int]) -> Page:
    """The page `/route` of a server with these resolved arguments, whose ranks `missing` (by tp) never register."""
    cp_size = int(args["attn_cp_size"])
    tp_size = int(args["tp_size"]) // cp_size
    places = list(itertools.product((0,), range(cp_size), range(tp_size), (0,)))
    registered: dict[tuple[int, ...], int] = {
        place: number for number, place in enumerate(places) if number not in missing
    }
    topology = {
        "attn_tp_size": tp_size,
        "attn_cp_size": cp_size,
        "dp_size": 1,
        "pp_size": 1,
        "page_size": PAGE_TOKENS,
        "kv_cache_dtype": args["kv_cache_dtype"],
        "follow_bootstrap_room": True,
        "enable_dsa_cache_layer_split": args.get("enable_dsa_cache_layer_split", False),
        "prefill_http_port": args["port"],
    }

    def page(query: str) -> Reply:
        asked = parse_qs(query)
        try:
            place = tuple(int(asked[name][0]) for name in _PLACE)
        except (KeyError, ValueError):
            return _text("Missing inputs for bootstrap server.", 400)
        if len(registered) < len(places):
            return _text(f"Prefill server not fully registered yet ({len(registered)} workers registered).", 503)
        if place == (-1, -1, -1, -1):
            return _json(topology)
        if place not in registered:
            return _text(f"Bootstrap info not found for {place}", 404)
        return _json({"rank_ip": HOST, "rank_port": _FIRST_RANK_PORT + registered[place]})

    return page


def _json(body: object) -> Reply:
    return Reply("application/json", json.dumps(body).encode())


def _text(body: str, status: int) -> Reply:
    return Reply("text/plain; charset=utf-8", body.encode(), status)
