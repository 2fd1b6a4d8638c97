"""LayerSplit as it was logged, against the plan: LAYER-RANGE, LAYER-CP1, LAYER-DISAGREE, LAYER-NO-COMM."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.layers import LoggedRange, logged_ranges, uncovered
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.verdict import ServerVerdict

_RESTART = "drain this server and restart it; ranks that own other layers than their peers believe serve wrong KV"


def layer_range(context: Context) -> Iterator[Finding]:
    """A rank's range is not the planned one, or the ranges leave a layer out or own it twice."""
    for server in context.servers:
        logged = logged_ranges(context.log.newest(server.id, "layer_plan"))
        if not logged:
            continue
        planned = server.plan.layer_split.ranges if server.plan is not None else ()
        comparable = [one for one in logged if one.cp_rank < len(planned) == one.group_size]
        differing = [one for one in comparable if planned[one.cp_rank] != _own(one)]
        gaps = uncovered(_each_once(logged), logged[0].layers) if _is_complete(logged) else ()
        for one in differing or (logged[:1] if gaps else ()):
            yield _range_finding(server, one, planned[one.cp_rank] if differing else None, gaps)


def layer_cp1(context: Context) -> Iterator[Finding]:
    """The flag is set and nothing is split: one context-parallel rank, or a pool of the ordinary size."""
    for server in context.servers:
        info = context.sample.infos.get(server.id)
        args = info.args if info is not None else {}
        if not args.get("enable_dsa_cache_layer_split"):
            continue
        size = args.get("attn_cp_size")
        if size == 1:
            yield Finding(
                "LAYER-CP1",
                "breach",
                "no layer is split, no HBM saved: attn_cp_size resolved to 1 beside --enable-dsa-cache-layer-split",
                scope="server",
                server=server.id,
                **evidence("reported", attn_cp_size=size),
                advice="relaunch with --enable-prefill-cp --cp-strategy interleave; until 0.5.21 attn_cp_size becomes "
                "tp / dp, so choose --tp-size and --dp-size for the CP size that you want",
            )
            continue
        for rank in context.ranks_of(server.id):
            line = rank.line("layers.owned")
            if server.plan is not None and line.seen is not None and line.seen == server.plan.model.layers:
                yield Finding(
                    "LAYER-CP1",
                    "breach",
                    f"LayerSplit is on and this rank holds all {line.seen:.0f} layers",
                    scope="rank",
                    server=server.id,
                    rank=rank.rank,
                    **evidence("logged", owned_layers=line.seen, attn_cp_size=size),
                    advice="read the log lines 'Layer shard plan' of all ranks; " + _RESTART,
                )


def layer_disagree(context: Context) -> Iterator[Finding]:
    """Ranks believe in different group sizes or partitions."""
    for server in context.servers:
        logged = logged_ranges(context.log.newest(server.id, "layer_plan"))
        beliefs = {(one.group_size, one.layers, one.partitions) for one in logged}
        if len(beliefs) < 2:
            continue
        sizes = sorted({one.group_size for one in logged})
        yield Finding(
            "LAYER-DISAGREE",
            "breach",
            f"{len(logged)} ranks logged {len(beliefs)} different partitions"
            + (f" (group sizes {', '.join(map(str, sizes))})" if len(sizes) > 1 else ""),
            scope="server",
            server=server.id,
            **evidence("logged", ranks=len(logged), partitions=len(beliefs), group_sizes=sizes),
            advice="the ranks were not launched with the same --tp-size, --attn-cp-size or model revision: " + _RESTART,
        )


def layer_no_comm(context: Context) -> Iterator[Finding]:
    """A rank logged its shard plan and no broadcast communicator, though the server is ready."""
    for server in context.servers:
        plans = context.log.newest(server.id, "layer_plan")
        if not plans or not server.is_ready:
            continue
        having = context.log.newest(server.id, "layer_comm")
        ready = context.ready_for_seconds(server.id)
        if ready is not None and ready < context.thresholds.attach_seconds and not context.since_start:
            continue
        for rank in plans:
            if rank is not None and rank not in having:
                yield Finding(
                    "LAYER-NO-COMM",
                    "breach",
                    "a layer shard plan was logged and no broadcast communicator: remote layers cannot be fetched",
                    scope="rank",
                    server=server.id,
                    rank=rank,
                    **evidence("logged", ranks_with_plan=len(plans), ranks_with_communicator=len(having)),
                    advice="read this rank's NCCL lines after 'Layer shard plan'; " + _RESTART,
                )


def _range_finding(
    server: ServerVerdict, one: LoggedRange, planned: tuple[int, int] | None, gaps: tuple[int, ...]
) -> Finding:
    start, end = _own(one)
    says = f"owns layers [{start},{end})"
    says += f", planned [{planned[0]},{planned[1]})" if planned is not None else ""
    says += f"; not exactly one rank owns layer {_few(gaps)}" if gaps else ""
    return Finding(
        "LAYER-RANGE",
        "breach",
        says,
        scope="rank",
        server=server.id,
        rank=one.rank,
        evidence={
            "logged_range": [start, end],
            "planned_range": list(planned) if planned is not None else None,
            "layers_without_one_owner": list(gaps),
        },
        sources={"logged_range": "logged", "planned_range": "computed", "layers_without_one_owner": "logged"},
        advice=_RESTART,
    )


def _own(one: LoggedRange) -> tuple[int, int]:
    return one.start, one.end


def _each_once(logged: tuple[LoggedRange, ...]) -> tuple[tuple[int, int], ...]:
    """One range a context-parallel rank: with several TP ranks in one, they log the same."""
    return tuple({one.cp_rank: _own(one) for one in logged}.values())


def _is_complete(logged: tuple[LoggedRange, ...]) -> bool:
    return {one.cp_rank for one in logged} == set(range(logged[0].group_size))


def _few(layers: tuple[int, ...]) -> str:
    return ", ".join(map(str, layers[:6])) + (", ..." if len(layers) > 6 else "")
