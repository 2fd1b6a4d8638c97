"""Whether an OOM kill among the ranks takes ranktop along: a cgroup that holds both dies whole with memory.oom.group.

memory.oom.group: Documentation/admin-guide/cgroup-v2.rst of Linux. Kubernetes sets it on every container since 1.28.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from collectors.cgroup import number
from collectors.cgroup_paths import Mount, parse_membership, parse_mounts, usual_mounts, visible_chain
from collectors.procfs import read_file
from ranktop.cli.doctor_checks import Check
from ranktop.sample import RankProcess

SUBJECT = "OOM kills (memory.oom.group)"
_COSTS = "when a rank is killed for memory, nobody is left to show it or to record what follows"
_REMEDY = "run the screen and the recorder outside of that cgroup: on the host, as a systemd unit, in a pod of its own"

_Chain = list[tuple[str, str]]
"""Folder and path of a cgroup and of those above it, innermost first."""


def dies_with_the_ranks(proc_root: str, sys_root: str, ranks: Sequence[RankProcess]) -> Check:
    """This process, and every other ranktop of the node, held against the cgroups of the ranks."""
    if not ranks:
        return Check(SUBJECT, "not here", "no rank runs, so it was not tried")
    mounts = _mounts(proc_root)
    of_ranks = [chain for rank in ranks if (chain := _chain(proc_root, str(rank.pid), mounts, sys_root))]
    own = _chain(proc_root, "self", mounts, sys_root)
    if not of_ranks or not own:
        return Check(SUBJECT, "not here", "the cgroups of the ranks or of ranktop are not visible here")
    watchers = {"this ranktop": own}
    for pid in _other_ranktops(proc_root):
        watchers[f"ranktop (pid {pid})"] = _chain(proc_root, str(pid), mounts, sys_root)
    for name, chain in watchers.items():
        if group := _killed_whole(chain, of_ranks):
            detail = f"{name} and ranks are in {group}, which is killed whole: an OOM kill takes ranktop too"
            return Check(SUBJECT, "no", detail, _COSTS, _REMEDY)
    if own[0] in [chain[0] for chain in of_ranks]:
        return Check(SUBJECT, "yes", f"in the ranks' cgroup {own[0][1]}, of which an OOM kill takes one process")
    return Check(SUBJECT, "yes", "none takes ranktop with the ranks")


def _killed_whole(watcher: _Chain, of_ranks: Sequence[_Chain]) -> str | None:
    """The innermost cgroup above both that has memory.oom.group set."""
    for folder, path in watcher:
        if any((folder, path) in chain for chain in of_ranks) and _is_set(f"{folder}/memory.oom.group"):
            return path
    return None


def _is_set(path: str) -> bool:
    try:
        return bool(number(read_file(path, 4096)))
    except OSError:
        return False


def _chain(proc_root: str, pid: str, mounts: list[Mount], sys_root: str) -> _Chain:
    try:
        member = parse_membership(read_file(f"{proc_root}/{pid}/cgroup", 1 << 16))
    except OSError:
        return []
    return visible_chain(member, mounts, sys_root) if member is not None else []


def _mounts(proc_root: str) -> list[Mount]:
    try:
        return parse_mounts(read_file(f"{proc_root}/self/mountinfo"))
    except OSError:
        return usual_mounts()


def _other_ranktops(proc_root: str) -> Iterator[int]:
    """Processes that run the `ranktop` script, as `ranktop ...` or `python .../ranktop ...`."""
    for name in os.listdir(proc_root):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            words = read_file(f"{proc_root}/{name}/cmdline", 4096).split(b"\0")
        except OSError:
            continue
        if any(os.path.basename(word) == b"ranktop" for word in words[:2]):
            yield int(name)
