"""The bootstrap server of a PD prefill node: which ranks have registered. Read-only `GET /route`, never a PUT.

`disaggregation/common/conn.py` of SGLang 0.5.18 and 0.5.23: 503 with a count until as many ranks have registered as
the topology has, then the topology as JSON, and per rank 200 with its address or 404. The count rises with every PUT,
so a rank that registered twice can hide one that never did: once ready, only the answers per rank count.
"""

from __future__ import annotations

import itertools
import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from collectors.cmdline import option
from collectors.http import Answer, failure, get
from ranktop.sample import Bootstrap, BootstrapRank, NoData, Processes, SourceError

NOT_READY_SECONDS = 10.0
READY_SECONDS = 60.0

_DEFAULT_PORT = "8998"
_DEADLINE_SECONDS = 3.0
_MAX_BYTES = 65_536
_MAX_RANKS = 512
_COUNT = re.compile(rb"not fully registered yet \((\d{1,9}) workers? registered\)")


class BootstrapCollector:
    """Asks one prefill server's bootstrap port, found from its command line or given as `url`."""

    name = "bootstrap"
    part = "bootstraps"

    def __init__(self, server: str, url: str | None = None) -> None:
        self.server: str | None = server
        self._id = server
        self._url = url
        self._is_ready = False

    @property
    def period_seconds(self) -> float:
        """10 s until all ranks have registered, then a minute."""
        return READY_SECONDS if self._is_ready else NOT_READY_SECONDS

    def read(self, processes: Processes | None, now: float) -> Bootstrap:
        """Topology and registrations. NoData where the server is no prefill node, SourceError where it fails."""
        url = self._url or bootstrap_url(processes, self._id)
        self._is_ready = False
        answer = _route(url, -1, -1, -1, -1)
        if answer.status == 503:
            return Bootstrap(self._id, False, registered_count(answer.body), _ranks_of(processes, self._id))
        topology = _topology(answer)
        sizes = [_size(topology, name) for name in ("dp_size", "attn_cp_size", "attn_tp_size", "pp_size")]
        places = itertools.islice(itertools.product(*(range(size) for size in sizes)), _MAX_RANKS)
        ranks = tuple(self._rank(url, *place) for place in places)
        self._is_ready = True
        registered = sum(1 for rank in ranks if rank.is_registered)
        layer_split = topology.get("enable_dsa_cache_layer_split")
        dtype, page_size = topology.get("kv_cache_dtype"), topology.get("page_size")
        return Bootstrap(
            self._id,
            True,
            registered,
            sizes[0] * sizes[1] * sizes[2] * sizes[3],
            page_size=page_size if isinstance(page_size, int) else None,
            kv_cache_dtype=dtype if isinstance(dtype, str) else None,
            layer_split=layer_split if isinstance(layer_split, bool) else None,
            ranks=ranks,
        )

    def _rank(self, url: str, dp: int, cp: int, tp: int, pp: int) -> BootstrapRank:
        answer = _route(url, dp, cp, tp, pp)
        if answer.status == 404:
            return BootstrapRank(dp, cp, tp, pp, is_registered=False)
        found = _object(answer) if answer.status == 200 else None
        if found is None:
            return BootstrapRank(dp, cp, tp, pp)
        ip, port = found.get("rank_ip"), found.get("rank_port")
        address = f"{ip}:{port}" if isinstance(ip, str) and isinstance(port, int) else None
        return BootstrapRank(dp, cp, tp, pp, is_registered=True, address=address)


def bootstrap_url(processes: Processes | None, server: str) -> str:
    """Address of the server's bootstrap port by its command line. Raises NoData where it is no prefill server."""
    main = next((main for main in processes.servers if main.id == server), None) if processes is not None else None
    if main is None:
        raise NoData(f"bootstrap of {server}: its command line is not seen here", "no_process")
    if option(main.argv, "--disaggregation-mode") != "prefill":
        raise NoData(f"{server} is no PD prefill server: it has no bootstrap port", "not_prefill")
    host = urlsplit(main.url or "").hostname or "127.0.0.1"
    port = option(main.argv, "--disaggregation-bootstrap-port") or _DEFAULT_PORT
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def registered_count(body: bytes) -> int | None:
    """Registrations so far, from the text of a 503."""
    match = _COUNT.search(body)
    return int(match[1]) if match is not None else None


def _route(url: str, dp: int, cp: int, tp: int, pp: int) -> Answer:
    query = f"prefill_dp_rank={dp}&prefill_cp_rank={cp}&target_tp_rank={tp}&target_pp_rank={pp}"
    return get(f"{url}/route?{query}", deadline_seconds=_DEADLINE_SECONDS, max_bytes=_MAX_BYTES)


def _topology(answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        raise failure(answer)
    found = _object(answer)
    if found is None:
        raise SourceError(f"GET {answer.url}: 200, but no topology in it: is this a bootstrap port?", "bad_answer")
    return found


def _object(answer: Answer) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _size(topology: dict[str, Any], name: str) -> int:
    size = topology.get(name)
    return size if isinstance(size, int) and 0 < size <= _MAX_RANKS else 1


def _ranks_of(processes: Processes | None, server: str) -> int | None:
    """Ranks seen on this node: what is expected of a server that runs on it alone."""
    count = sum(1 for rank in processes.ranks if rank.server == server) if processes is not None else 0
    return count or None
