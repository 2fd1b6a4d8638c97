"""Which rank a pid was, and whether a victim's name is one of SGLang's."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.why.evidence import Evidence

_COMMS = ("sglang", "python", "pt_main_thread", "ray::")
"""How the kernel names SGLang's processes: the first 15 characters of a title, the interpreter before it is set."""


class Owner(NamedTuple):
    """A rank by server and tag."""

    server: str
    rank: str


def owner_of(evidence: Evidence, pid: int | None) -> Owner | None:
    """The rank that had this pid, by recordings and by what is left of its server."""
    for recorded in evidence.recordings:
        for rank in recorded.ranks:
            if pid in (rank.pid, *rank.namespace_pids):
                return Owner(rank.server, str(rank.tag))
    return next((Owner(rank.server, str(rank.tag)) for rank in evidence.orphans if rank.pid == pid), None)


def is_sglang(evidence: Evidence, pid: int | None, comm: str | None) -> bool:
    """By its rank, by a log that names the pid, else by the name that the kernel told."""
    if owner_of(evidence, pid) is not None or any(pid == gone.pid for log in evidence.logs for gone in log.killed):
        return True
    return comm is None or comm.startswith(_COMMS)
