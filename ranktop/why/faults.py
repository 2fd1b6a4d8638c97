"""Deaths by other causes: GPU faults, signals, exceptions, a main process that went and left its ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ranktop.sample import Event
from ranktop.why.death import Claim, Death
from ranktop.why.evidence import Evidence, Killed, ServerLog
from ranktop.why.planned import planned_claim, planned_pools
from ranktop.why.who import is_sglang, owner_of

_CASCADE_SECONDS = 60.0
_AFTERMATH_SECONDS = 600.0
"""A log tells of its ranks' end within this time after the kernel did."""
_ENDS_PROCESSES = frozenset({43, 45})
"""XIDs that say that a process's work on the GPU was ended."""
_ENDS_NOTHING = frozenset({63, 92, 154})
"""XIDs that record what was repaired, or which recovery is needed."""


def gpu_deaths(evidence: Evidence) -> Iterator[Death]:
    """XIDs that lie close together are one death, if a process is named in it."""
    found = [(log.source, event) for log in evidence.kernel for event in log.events if event.kind == "xid"]
    found.sort(key=lambda item: item[1].at_unix_seconds)
    cascade: list[tuple[str, Event]] = []
    for item in found:
        if cascade and item[1].at_unix_seconds - cascade[-1][1].at_unix_seconds > _CASCADE_SECONDS:
            yield from _cascade(evidence, cascade)
            cascade = []
        cascade.append(item)
    yield from _cascade(evidence, cascade)


def _cascade(evidence: Evidence, cascade: Sequence[tuple[str, Event]]) -> Iterator[Death]:
    victims = {
        event.fields["pid"]: event
        for _, event in cascade
        if "pid" in event.fields and event.fields["xid"] not in _ENDS_NOTHING
    }
    if not victims:
        return
    source, first = cascade[0]
    named = {event.fields["caused_by_xid"] for event in victims.values() if "caused_by_xid" in event.fields}
    seen = {event.fields["xid"] for _, event in cascade} - _ENDS_PROCESSES
    buses = sorted({str(event.fields.get("pci_bus_id")) for event in victims.values()})
    owners = {pid: owner_of(evidence, pid) for pid in victims}
    told = ", ".join(f"{owners[pid]} (pid {pid})" if owners[pid] else f"pid {pid}" for pid in sorted(victims))
    roots = ", ".join(f"XID {xid}" for xid in sorted(named | seen))
    if named | seen:
        root = Claim("root", f"{roots}; the others follow from it", "proven", source, {"xids": sorted(named | seen)})
    else:
        root = Claim("root", "the application's own fault more often than the GPU's", "unknown", source)
    processes = "process" if len(victims) == 1 else "processes"
    is_certain = any(event.fields["xid"] in _ENDS_PROCESSES for event in victims.values())
    yield Death(
        "GPU fault",
        f"{len(victims)} {processes} {'ended' if is_certain else 'hit'} on {', '.join(buses)}",
        (Claim("victim", told, "proven" if is_certain else "likely", source, {"pids": sorted(victims)}), root),
        first.at_unix_seconds,
        tuple(sorted(victims)),
        is_sglang=any(is_sglang(evidence, pid, event.fields.get("comm")) for pid, event in victims.items()),
    )


def log_deaths(evidence: Evidence, known: Sequence[Death]) -> Iterator[Death]:
    """Ends that a log tells and that no other source explains."""
    pids = {pid for death in known for pid in death.pids}
    for log in evidence.logs:
        own = [gone for gone in log.killed if gone.pid not in pids]
        pids |= {gone.pid for gone in own}
        for gone in own:
            yield _signalled(evidence, log, gone)
        if not own and (fault := _fault(log)) is not None and not _is_explained(fault, known):
            yield _faulted(log, fault)


def _signalled(evidence: Evidence, log: ServerLog, gone: Killed) -> Death:
    if not gone.is_sigkill:
        claims = (Claim("victim", gone.text, "proven", log.source, {"pid": gone.pid}),)
        return Death("fault", f"pid {gone.pid} ended with an error", claims, gone.at_unix_seconds, (gone.pid,))
    since = evidence.kernel_since_unix_seconds
    is_covered = since is not None and gone.at_unix_seconds >= since
    why = (
        "the kernel's log of that time was read and has no such kill: another process sent SIGKILL"
        if is_covered
        else "SIGKILL; only the kernel's log of that time can say from whom (give --kernel-log FILE)"
    )
    claims = (
        Claim("victim", f"pid {gone.pid}: {gone.text}", "proven", log.source, {"pid": gone.pid}),
        Claim("constraint", why, "likely" if is_covered else "unknown", "kernel log" if is_covered else None),
        Claim("limit", "this process's share of the host is not known", "unknown"),
        planned_claim(planned_pools(replace(evidence, logs=(log,))), None),
        Claim("grew_last", "no kernel log names the constraint, so growth explains nothing", "unknown"),
    )
    return Death("killed", f"pid {gone.pid} was killed (SIGKILL)", claims, gone.at_unix_seconds, (gone.pid,))


def _fault(log: ServerLog) -> Event | None:
    """The first exception of a scheduler, or SIGQUIT, of the newest start that no SIGTERM came before."""
    start = max((event.at_unix_seconds for event in log.events if event.kind == "server_args"), default=float("-inf"))
    for event in log.events:
        if event.at_unix_seconds < start:
            continue
        if event.kind == "signal" and event.fields.get("signal") == "SIGTERM":
            return None
        if event.kind == "signal" and event.fields.get("signal") == "SIGQUIT":
            return event
        if event.kind == "traceback" and event.fields.get("process"):
            return None if event.fields.get("error_type") == "KeyboardInterrupt" else event
    return None


def _faulted(log: ServerLog, fault: Event) -> Death:
    where = f"{fault.rank}: " if fault.rank else ""
    after = {
        event.rank for event in log.events if event.kind == "traceback" and event.rank and event.rank != fault.rank
    }
    claims = [Claim("root", f"{where}{fault.text[:200]}", "proven", log.source)]
    if after:
        claims.append(Claim("after", f"then {', '.join(sorted(after))}", "proven", log.source))
    is_signal = fault.kind == "signal"
    what = "SIGQUIT, which a failing child sends, ended the server" if is_signal else "an exception ended the server"
    return Death("fault", f"{where}{what}", tuple(claims), fault.at_unix_seconds)


def _is_explained(fault: Event, known: Sequence[Death]) -> bool:
    return any(
        death.at_unix_seconds is None or 0 <= fault.at_unix_seconds - death.at_unix_seconds <= _AFTERMATH_SECONDS
        for death in known
        if death.is_sglang
    )


def recorded_deaths(evidence: Evidence, known: Sequence[Death]) -> Iterator[Death]:
    """Ranks that a recording missed from one sample to the next, and that nothing else speaks of."""
    pids = {pid for death in known for pid in death.pids}
    for recorded in evidence.recordings:
        terms = any(event.kind == "signal" and event.fields.get("signal") == "SIGTERM" for event in recorded.events)
        gone = [(at, rank) for at, rank in recorded.gone if rank.pid not in pids]
        if not gone or terms:
            continue
        at = min(at for at, _ in gone)
        if any(death.at_unix_seconds is not None and abs(at - death.at_unix_seconds) <= 30 for death in known):
            continue
        tags = ", ".join(f"{rank.tag} (pid {rank.pid})" for _, rank in gone)
        claims = [Claim("victim", f"{tags} vanished", "proven", recorded.source)]
        said = [event for event in recorded.events if event.kind in ("traceback", "signal")]
        if said:
            claims.append(Claim("root", f"the log said before: {said[-1].text[:200]}", "likely", recorded.source))
        if recorded.available_bytes is not None:
            text = f"{recorded.available_bytes / 1e9:.2f} GB of the host's memory were available just before"
            claims.append(
                Claim("limit", text, "proven", recorded.source, {"available_bytes": recorded.available_bytes})
            )
        claims.append(planned_claim(planned_pools(evidence, gone[0][1].server), recorded.limit_bytes))
        title = f"{len(gone)} ranks vanished" if len(gone) > 1 else f"{gone[0][1].tag} vanished"
        pids = pids | {rank.pid for _, rank in gone}
        yield Death("killed", title, tuple(claims), at, tuple(rank.pid for _, rank in gone), gone[0][1].server)


def orphan_deaths(evidence: Evidence) -> Iterator[Death]:
    """Schedulers without a main process: it died, and they did not."""
    by_server: dict[str, list[int]] = {}
    for rank in evidence.orphans:
        by_server.setdefault(rank.server, []).append(rank.pid)
    for server, pids in by_server.items():
        held = sum(rank.rss_shmem_bytes or 0 for rank in evidence.orphans if rank.server == server)
        text = f"pids {', '.join(map(str, pids))} live on without it"
        if held:
            text += f" and hold {held / 1e9:.2f} GB of shared memory"
        yield Death(
            "server gone",
            f"the main process of {server} ended and left {len(pids)} ranks",
            (
                Claim("victim", f"the main process of {server}", "proven", "/proc"),
                Claim("after", text, "proven", "/proc", {"pids": pids, "rss_shmem_bytes": held}),
            ),
            server=server,
        )
