"""Kills of the kernel, each once, those of one shortage together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ranktop.sample import Event
from ranktop.why.evidence import Remains

_TOGETHER_SECONDS = 30.0


class Shortage(NamedTuple):
    """Kills for one constraint within a short time, oldest first; `memory.oom.group` ends a whole cgroup at once."""

    source: str
    kills: tuple[Event, ...]

    @property
    def first(self) -> Event:
        """The kill that the kernel gave a constraint for, else the first."""
        return next((kill for kill in self.kills if "constraint" in kill.fields), self.kills[0])


def shortages(found: Iterable[tuple[str, Event]]) -> list[Shortage]:
    """All kills, oldest first."""
    together: list[Shortage] = []
    for source, kill in _once(found):
        last = together[-1] if together else None
        if last is not None and _is_same(last.kills[-1], last.first, kill):
            together[-1] = last._replace(kills=(*last.kills, kill))
        else:
            together.append(Shortage(source, (kill,)))
    return together


def is_in(kill: Event, group: Remains) -> bool:
    """Whether the cgroup counts this kill."""
    paths = [kill.fields.get(name) for name in ("task_memcg", "oom_memcg")]
    inside = f"{group.path.rstrip('/')}/"
    return any(isinstance(path, str) and (path == group.path or path.startswith(inside)) for path in paths)


def _is_same(last: Event, first: Event, kill: Event) -> bool:
    """The further kills of a group come without the line that names the constraint."""
    if kill.at_unix_seconds - last.at_unix_seconds > _TOGETHER_SECONDS:
        return False
    if bool(kill.fields.get("memcg")) != bool(first.fields.get("memcg")):
        return False
    path, other = kill.fields.get("oom_memcg"), first.fields.get("oom_memcg")
    return path is None or other is None or path == other


def _once(found: Iterable[tuple[str, Event]]) -> list[tuple[str, Event]]:
    """Journal, kernel buffer and pasted text tell the same kill, with the same sizes; one with its constraint wins."""
    kept: dict[tuple[object, ...], tuple[str, Event]] = {}
    for source, kill in found:
        names = ("pid", "comm", "total_vm_bytes", "anon_rss_bytes", "shmem_rss_bytes")
        key = tuple(kill.fields.get(name) for name in names)
        if key not in kept or ("constraint" in kill.fields and "constraint" not in kept[key][1].fields):
            kept[key] = (source, kill)
    return sorted(kept.values(), key=lambda item: item[1].at_unix_seconds)
