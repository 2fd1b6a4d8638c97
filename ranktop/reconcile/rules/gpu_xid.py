"""Faults that the NVIDIA driver reports: GPU-XID, roots with their victims.

Meanings: NVIDIA XID Errors (docs.nvidia.com/deploy/xid-errors). 13, 31, 43 and 45 are often the application's, or what
another fault left behind; 63 and 92 record what was repaired; 154 tells the recovery that is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ranktop.clock import iso_utc
from ranktop.finding import Finding
from ranktop.reconcile.grouping import rank_span
from ranktop.reconcile.rules.rule import Context
from ranktop.sample import Event

_FATAL = frozenset({48, 62, 64, 74, 79, 94, 95, 109, 119, 120, 136, 140, 143, 145, 146, 147, 148, 149, 150})
_VICTIMS = frozenset({43, 45})
_SAME_SECONDS = 5.0

_Owner = tuple[str | None, str | None]


def gpu_xid(context: Context) -> Iterator[Finding]:
    """One finding for every rank (or the node) that a root was reported of; its victims are counted in it."""
    since = context.since(context.thresholds.event_seconds)
    events = sorted(context.incidents.of("xid", since_unix_seconds=since), key=lambda event: event.at_unix_seconds)
    if not events:
        return
    events = _once(events)
    cascade = context.thresholds.xid_cascade_seconds
    roots = [event for event in events if not _is_victim(event, events, cascade)] + _named_only(events)
    by_owner: dict[_Owner, list[Event]] = {}
    for root in roots:
        by_owner.setdefault(_owner(context, root), []).append(root)
    for owner, own in by_owner.items():
        worst = max(own, key=lambda event: (_xid(event) in _FATAL, event.at_unix_seconds))
        victims = [
            event
            for event in events
            if event not in roots and 0 <= event.at_unix_seconds - worst.at_unix_seconds <= cascade
        ]
        yield _finding(context, owner, worst, own, victims)


def _finding(context: Context, owner: _Owner, root: Event, own: Sequence[Event], victims: Sequence[Event]) -> Finding:
    xid, bus = _xid(root), root.fields.get("pci_bus_id")
    others = sorted({_xid(event) for event in own} - {xid})
    times = sum(1 for event in own if _xid(event) == xid)
    hit = [rank for victim in victims if (rank := _owner(context, victim)[1]) is not None]
    ranks = list(dict.fromkeys(hit))
    also = f", {len(victims)} followed" + (f" on {rank_span(ranks)}" if ranks else "") if victims else ""
    return Finding(
        "GPU-XID",
        "critical" if xid in _FATAL else "warn",
        f"XID {xid} "
        + (f"on {bus}" if bus else "(named by what it led to)")
        + (f", {times} times in the last hour" if times > 1 else "")
        + (f", and XID {', '.join(map(str, others))}" if others else "")
        + also,
        scope="rank" if owner[1] is not None else "node",
        server=owner[0],
        rank=owner[1],
        since=iso_utc(root.at_unix_seconds),
        evidence={
            "xid": xid,
            "pci_bus_id": bus,
            "pid": root.fields.get("pid"),
            "times": times,
            "other_xids": others,
            "victim_xids": [_xid(victim) for victim in victims[:16]],
            "victim_ranks": ranks,
            "victim_pids": sorted({pid for victim in victims if isinstance(pid := victim.fields.get("pid"), int)})[:16],
        },
        sources=dict.fromkeys(
            ("xid", "pci_bus_id", "pid", "times", "other_xids", "victim_xids", "victim_ranks", "victim_pids"),
            root.source,
        ),
        advice=(
            "drain this node and take the kernel log with it: the hardware or its link failed, and the victims' XIDs "
            "are its consequence"
        )
        if xid in _FATAL
        else "read the server's log of this rank for an exception at the same time; it is the application's fault more "
        "often than the GPU's",
    )


def _once(events: Sequence[Event]) -> list[Event]:
    """NVML and the kernel's log tell the same fault; the kernel's names the process."""
    kept: list[Event] = []
    for event in events:
        twin = next(
            (
                index
                for index, other in enumerate(kept)
                if _xid(other) == _xid(event)
                and other.fields.get("pci_bus_id") == event.fields.get("pci_bus_id")
                and other.source != event.source
                and event.at_unix_seconds - other.at_unix_seconds <= _SAME_SECONDS
            ),
            None,
        )
        if twin is None:
            kept.append(event)
        elif "pid" in event.fields:
            kept[twin] = event
    return kept


def _is_victim(event: Event, events: Sequence[Event], cascade_seconds: float) -> bool:
    """The driver says what it follows from; or it is a clean-up after another XID shortly before."""
    if "caused_by_xid" in event.fields:
        return True
    return _xid(event) in _VICTIMS and any(
        _xid(other) not in _VICTIMS and 0 <= event.at_unix_seconds - other.at_unix_seconds <= cascade_seconds
        for other in events
    )


def _named_only(events: Sequence[Event]) -> list[Event]:
    """Roots that no line of their own tells, only what followed them."""
    told = {_xid(event) for event in events}
    named: dict[int, Event] = {}
    for event in events:
        root = event.fields.get("caused_by_xid")
        if isinstance(root, int) and root not in told:
            named.setdefault(root, replace(event, server=None, rank=None, fields={"xid": root}))
    return list(named.values())


def _owner(context: Context, event: Event) -> _Owner:
    """The rank of the event's process, else the rank on its GPU."""
    if event.rank is not None:
        return event.server, event.rank
    bus = event.fields.get("pci_bus_id")
    gpus = context.sample.gpus.gpus if context.sample.gpus else ()
    index = next((gpu.index for gpu in gpus if gpu.pci_bus_id == bus), None)
    if index is not None:
        for rank in context.ranks:
            if rank.gpu == index:
                return rank.server, rank.rank
    return None, None


def _xid(event: Event) -> int:
    return int(event.fields.get("xid") or 0)
