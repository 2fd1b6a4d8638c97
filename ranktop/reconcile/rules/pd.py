"""Between prefill and decode: PD-FAILURES, PD-DUPLICATE, PD-TRANSPORT."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from ranktop.finding import Finding
from ranktop.reconcile.rules.evidence import evidence, over_window, span
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.verdict import ServerVerdict
from ranktop.sample import Event

_BACKEND = "--disaggregation-transfer-backend"
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
        bootstrap = context.sample.bootstraps.get(server.id)
        if bootstrap is not None and (bootstrap.registered_ranks or 0) > (bootstrap.expected_ranks or math.inf):
            yield Finding(
                "PD-DUPLICATE",
                "warn",
                f"{bootstrap.registered_ranks} registrations at the bootstrap server, {bootstrap.expected_ranks} ranks",
                scope="server",
                server=server.id,
                **evidence("reported", registered=bootstrap.registered_ranks, expected=bootstrap.expected_ranks),
                advice="a rank registered again after a restart, and its count can hide one that is missing: restart "
                "the prefill server as a whole",
            )
        elif again:
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
    """KV goes over TCP, the transfer engine found no RDMA device, or another backend runs than was asked for."""
    for server in context.servers:
        told = context.log.all_of(server.id, "transport")
        asked = _asked_backend(context, server)
        is_forced = asked == "mooncake_tcp"
        info = context.sample.infos.get(server.id)
        runs = info.args.get(_BACKEND.strip("-").replace("-", "_")) if info is not None else None
        if asked is not None and not is_forced and runs is not None and runs != asked:
            yield Finding(
                "PD-TRANSPORT",
                "warn",
                f"{_BACKEND} {asked} was asked for, {runs} runs",
                scope="server",
                server=server.id,
                **evidence("reported", asked=asked, runs=runs),
                advice="read the log for why SGLang took another backend; prefill and decode must use the same one",
            )
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


def _asked_backend(context: Context, server: ServerVerdict) -> str | None:
    """By the command line; `/server_info` tells what it resolved to."""
    processes = context.sample.processes
    argv = next((one.argv for one in (processes.servers if processes else ()) if one.id == server.id), ())
    spelt = [word.removeprefix(f"{_BACKEND}=") for word in argv if word.startswith(f"{_BACKEND}=")]
    apart = [value for name, value in pairwise(argv) if name == _BACKEND]
    return next(iter((*spelt, *apart)), None)


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
