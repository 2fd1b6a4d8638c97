"""How a planned number comes about, with the numbers in it: the multiplication that nobody does at 3 a.m."""

from __future__ import annotations

from ranktop.plan.plan import HostPlan, Plan, RankPlan
from ranktop.reconcile.verdict import Verdict
from tui.views.view import RankTarget


def formula(name: str, verdict: Verdict, rank: RankTarget | None) -> str:
    """The formula of a line's plan; empty where there is none."""
    plan, planned = _plans(verdict, rank)
    if plan is None or planned is None:
        return ""
    if name == "host.pools":
        return f"{plan.node.ranks} ranks x (primary + indexer)"
    if name == "host.reserve":
        return "10 GiB kept free by SGLang's start-up check"
    host = planned.host
    if host is not None and host.tokens is not None and name in _HOST:
        return _HOST[name](host)
    device = planned.device
    charged = ((device.pool_tokens or 0) + 64) * device.bytes_per_token
    if name == "hbm.kv" and device.pool_tokens is not None and charged == device.pool_bytes:
        return f"({device.pool_tokens:,} + 64) tokens x {device.bytes_per_token:,} B"
    if name == "layers.owned":
        return f"layers [{planned.layers.start}, {planned.layers.end})"
    return ""


def _plans(verdict: Verdict, rank: RankTarget | None) -> tuple[Plan | None, RankPlan | None]:
    for server in verdict.servers:
        if server.plan is None or (rank is not None and server.id != rank.server):
            continue
        for planned in server.plan.ranks:
            if rank is None or planned.rank == rank.rank:
                return server.plan, planned
    return None, None


def _primary(host: HostPlan) -> str:
    return f"{host.tokens:,} tokens x {host.row_bytes} B x {host.layers} layers"


def _indexer(host: HostPlan) -> str:
    pages = (host.pages or 0) + 1
    return f"({host.pages:,} + 1 = {pages:,}) pages x 8,448 B x {host.index_layers} layers"


def _bookkeeping(host: HostPlan) -> str:
    return f"{host.tokens:,} tokens x 20 B"


_HOST = {"host.primary": _primary, "host.indexer": _indexer, "host.bookkeeping": _bookkeeping}
