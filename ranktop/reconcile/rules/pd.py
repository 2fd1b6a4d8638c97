"""Prefill and decode apart: PD-FAILURES, PD-DUPLICATE, PD-TRANSPORT, PD-RANK-MISSING."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ranktop.finding import Finding
from ranktop.reconcile.rules.evidence import evidence, over_window, span
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.series import labels_of
from ranktop.reconcile.verdict import RankVerdict, ServerVerdict
from ranktop.sample import Event

_SECOND_HAND = "another rank"
"""A rank that only heard of a failure logs `Failed due to an unknown reason from another rank`."""


def pd_failures(context: Context) -> Iterator[Finding]:
    """Bootstrap or transfer failures rise: how many by phase, which rank failed first in its room, for what reason."""
    limits = context.thresholds
    for server in context.servers:
        window = context.window(server.id, limits.pd_failure_seconds)
        counted: dict[str, float] = {}
        if window is not None:
            for phase, field in (
                ("bootstrapping", "bootstrap_failures_by_rank"),
                ("transferring", "transfer_failures_by_rank"),
            ):
                # Every rank counts a request that fails: the rank that counted most is nearest to the requests.
                requests = max(window.gains(field).values(), default=0.0)
                if requests:
                    counted[phase] = requests
        events = context.recent(server.id, "pd_failed", limits.pd_failure_seconds)
        waiting = [event for event in events if "WaitingForInput" in event.text]
        if waiting:
            counted["waiting"] = float(len(_rooms(waiting)))
        rooms = _rooms(events)
        if not counted and not rooms:
            continue
        if not counted:
            counted = _logged_phases(events)
        first = _first(events)
        told = ", ".join(f"{count:.0f} {phase}" for phase, count in counted.items())
        why = ""
        if first is not None:
            reason = first.fields.get("reason")
            why = f"; first {first.rank or 'a rank without a tag'}" + (f": {reason}" if reason else "")
        numbers = {
            "requests_by_phase": counted,
            "rooms": len(rooms) or None,
            "first_rank": first.rank if first is not None else None,
            "first_reason": first.fields.get("reason") if first is not None else None,
        }
        yield Finding(
            "PD-FAILURES",
            "breach",
            f"requests failed between prefill and decode: {told}"
            + (f" {span(window)}" if window is not None else "")
            + why,
            scope="server",
            server=server.id,
            rank=first.rank if first is not None else None,
            **(over_window(window, **numbers) if window is not None else evidence("logged", **numbers)),
            advice="read the first failing rank's log around this room, and the peer it names; a longer time-out only "
            "hides it, and a request whose outcome is not known must not be sent again",
        )


def pd_duplicate(context: Context) -> Iterator[Finding]:
    """The same room fails on one rank and comes back."""
    limits = context.thresholds
    for server in context.servers:
        times: dict[tuple[str | None, int], list[float]] = {}
        for event in context.recent(server.id, "pd_failed", limits.pd_timeout_seconds):
            room = event.fields.get("room")
            if isinstance(room, int):
                times.setdefault((event.rank, room), []).append(event.at_unix_seconds)
        again = sorted({room for (_, room), at in times.items() if len(at) > 1 and at[-1] > at[0]})
        if again:
            yield Finding(
                "PD-DUPLICATE",
                "warn",
                f"{len(again)} room{'s' if len(again) > 1 else ''} failed more than once on a rank, first {again[0]}",
                scope="server",
                server=server.id,
                **evidence("logged", rooms=len(again), first_room=again[0]),
                advice="a router or client sends a request again under its old bootstrap_room: give each attempt a "
                "room of its own, and do not repeat one whose outcome is not known",
            )


def pd_transport(context: Context) -> Iterator[Finding]:
    """KV goes over TCP, or the transfer engine found no RDMA device."""
    for server in context.servers:
        told = context.log.all_of(server.id, "transport")
        is_forced = _asked_transport(context, server) == "mooncake_tcp"
        if not told and not is_forced:
            continue
        transports = {event.fields.get("transport") for event in told}
        no_device = any(event.fields.get("label") or event.fields.get("hcas") == 0 for event in told)
        if "Rdma" in transports or not (is_forced or no_device or "Tcp" in transports):
            continue
        hcas = next((event.fields["hcas"] for event in reversed(told) if "hcas" in event.fields), None)
        says = "no RDMA device was found" if no_device else "the transfer engine listens on TCP"
        yield Finding(
            "PD-TRANSPORT",
            "warn",
            "mooncake_tcp: KV is sent over TCP by choice" if is_forced else f"{says}: KV goes over TCP",
            scope="server",
            server=server.id,
            **evidence("reported" if is_forced else "logged", transport="tcp", hcas=hcas),
            advice="GPU memory cannot be registered over TCP, so every transfer goes through the host: look for "
            "/dev/infiniband in the container, and name the devices with --disaggregation-ib-device",
        )


def pd_rank_missing(context: Context) -> Iterator[Finding]:
    """A prefill rank that gave up registering, or that transfers nothing while its peers do."""
    for server in context.servers:
        gave_up = context.log.newest(server.id, "pd_register_gave_up")
        for rank, event in gave_up.items():
            yield Finding(
                "PD-RANK-MISSING",
                "breach",
                "all attempts to register with the bootstrap server failed",
                scope="rank" if rank is not None else "server",
                server=server.id,
                rank=rank,
                **evidence(
                    "logged",
                    attempts=event.fields.get("attempts"),
                    last_reason=_last_reason(context, server.id, rank),
                ),
                advice="decode requests to this rank wait until they time out: check that this host reaches "
                "--disaggregation-bootstrap-port on the prefill node, then restart this server",
            )
        if _all_ranks_transfer(context, server):
            yield from _without_transfers(context, server, frozenset(gave_up))


def _without_transfers(context: Context, server: ServerVerdict, known: frozenset[str | None]) -> Iterator[Finding]:
    kept = context.ledgers.get(server.id, ())
    totals = kept[-1].transfers_by_rank if kept else {}
    least = context.thresholds.pd_peer_transfers
    ranks = context.ranks_of(server.id)
    by_rank = {rank.rank: _of_rank(context, rank, totals) for rank in ranks}
    for rank in ranks:
        peers = [count for tag, count in by_rank.items() if tag != rank.rank]
        if by_rank[rank.rank] or not peers or min(peers) < least or rank.rank in known:
            continue
        yield Finding(
            "PD-RANK-MISSING",
            "breach",
            f"no transfer from this rank, its peers have at least {min(peers):.0f}",
            scope="rank",
            server=server.id,
            rank=rank.rank,
            **evidence("reported", transfers=0, fewest_peer_transfers=min(peers)),
            advice="under LayerSplit every rank sends its own layers: what decode gets from this rank is not there. "
            "Drain this server, and read its log for registration errors",
        )


def _all_ranks_transfer(context: Context, server: ServerVerdict) -> bool:
    """Else context-parallel ranks other than 0 are dummies and never see a transfer (0.5.18, `disaggregation/`)."""
    return server.role == "prefill" and server.plan is not None and server.plan.layer_split.active


def _of_rank(context: Context, rank: RankVerdict, totals: Mapping[str, float]) -> float:
    processes = context.sample.processes
    tag = next(
        (
            one.tag
            for one in (processes.ranks if processes else ())
            if (one.server, str(one.tag)) == (rank.server, rank.rank)
        ),
        None,
    )
    if tag is not None:
        labels = labels_of(tag)
        return totals.get(f"{labels.dp}/{labels.pp}/{labels.tp}", 0.0)
    plan = context.rank_plan(rank)
    return totals.get(f"{plan.dp}/{plan.pp}/{plan.tp}", 0.0) if plan is not None else 0.0


def _asked_transport(context: Context, server: ServerVerdict) -> str | None:
    """By the command line: `/server_info` tells the resolved `mooncake`."""
    processes = context.sample.processes
    argv = next((one.argv for one in (processes.servers if processes else ()) if one.id == server.id), ())
    return "mooncake_tcp" if any("mooncake_tcp" in word for word in argv) else None


def _rooms(events: tuple[Event, ...] | list[Event]) -> set[int]:
    return {room for event in events if isinstance(room := event.fields.get("room"), int)}


def _logged_phases(events: tuple[Event, ...]) -> dict[str, float]:
    names = {"bootstrap": "bootstrapping", "transfer": "transferring", "handshake": "bootstrapping"}
    rooms: dict[str, set[int]] = {}
    for event in events:
        phase = names.get(str(event.fields.get("phase")), "transferring")
        rooms.setdefault(phase, set()).add(int(event.fields.get("room", 0)))
    return {phase: float(len(found)) for phase, found in rooms.items()}


def _first(events: tuple[Event, ...]) -> Event | None:
    """The first failure that names its own reason; else the first one."""
    own = [event for event in events if _SECOND_HAND not in str(event.fields.get("reason", ""))]
    with_reason = [event for event in own if event.fields.get("reason")]
    return next(iter(with_reason or own or events), None)


def _last_reason(context: Context, server: str, rank: str | None) -> str | None:
    attempt = context.log.newest(server, "pd_register_failed").get(rank)
    return attempt.fields.get("reason") if attempt is not None else None
