"""Find a server's log without being told: where its stdout goes, its journald unit, its pod's or container's files.

Sources: proc(5), systemd's cgroup names, `/var/log/pods/NS_POD_UID/CONTAINER/N.log` of the kubelet, docker's
`containers/ID/ID-json.log`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ranktop.sample import NoData

_MAX_CGROUP_BYTES = 65_536
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_CONTAINER = re.compile(r"(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE)
_UNIT = re.compile(r"/([^/\n]+\.service)(?:/|$)", re.MULTILINE)
_NOT_ITS_OWN = re.compile(r"(user@\d+|containerd|docker|kubelet|crio|sshd|ssh|cron|init)\.service\Z")


class LogSource(Struct, frozen=True):
    """Where a log is. `history`: older files of the same log, newest first, some of them .gz."""

    kind: Literal["file", "command"]
    path: Path | None = None
    argv: tuple[str, ...] = ()
    history: tuple[Path, ...] = ()


def find_log(pid: int, proc_root: Path = Path("/proc"), root: Path = Path("/")) -> LogSource:
    """The log of the main process `pid`. Raises NoData with what was looked at and what to give instead."""
    for number in (1, 2):
        path = _file_behind(proc_root / str(pid), number)
        if path is not None:
            return LogSource("file", path, history=older_files(path))
    cgroup = _cgroup(proc_root / str(pid))
    pod, container = _POD.search(cgroup), _CONTAINER.search(cgroup)
    path = None
    if pod is not None:
        path = _pod_log(root, pod[1].replace("_", "-"), container[1] if container is not None else None)
    elif container is not None:
        path = _existing(root / "var/lib/docker/containers" / container[1] / f"{container[1]}-json.log")
    if path is not None:
        return LogSource("file", path, history=older_files(path))
    unit = next((match[1] for match in _UNIT.finditer(cgroup) if not _NOT_ITS_OWN.match(match[1])), None)
    if unit is not None and pod is None and container is None:
        argv = ("journalctl", "--no-pager", "-q", "-o", "cat", "-n", "20000", "-f", "-u", unit)
        return LogSource("command", argv=argv)
    raise NoData(
        f"log of pid {pid}: its output goes to no file, unit or container log that can be read here "
        "(give --log FILE or --log-command 'kubectl logs -f POD')",
        "no_log",
    )


def older_files(path: Path) -> tuple[Path, ...]:
    """Rotated siblings of a log, newest first: `x.log.1`, `x.log.2.gz`, kubelet's `0.log.DATE.gz` and `0.log`."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return ()
    number = re.fullmatch(r"(\d+)\.log", path.name)
    older = [
        name
        for name in names
        if name.startswith(f"{path.name}.") or (number is not None and _restart_number(name, int(number[1])))
    ]
    return tuple(sorted((path.parent / name for name in older), key=_mtime, reverse=True))


def _restart_number(name: str, newest: int) -> bool:
    """Whether this is the log of an earlier restart of the same container."""
    match = re.match(r"(\d+)\.log", name)
    return match is not None and int(match[1]) < newest


def _file_behind(process: Path, number: int) -> Path | None:
    """The regular file that a descriptor writes to, seen from here, None for a pipe, a terminal or /dev/null."""
    try:
        target = os.readlink(process / "fd" / str(number))
    except OSError:
        return None
    if not target.startswith("/") or target.startswith(("/dev/", "/proc/")) or target.endswith(" (deleted)"):
        return None
    # In another mount namespace the same name may be another file: the process's own root comes first.
    return _existing(process / "root" / target.lstrip("/")) or _existing(Path(target))


def _cgroup(process: Path) -> str:
    try:
        with (process / "cgroup").open("rb") as file:
            return file.read(_MAX_CGROUP_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _pod_log(root: Path, uid: str, container: str | None) -> Path | None:
    """The newest `N.log` of the pod; of the right container where `/var/log/containers` names its id."""
    if container is not None:
        for link in _listed(root / "var/log/containers"):
            if link.name.endswith(f"-{container}.log"):
                try:
                    return _existing(root / os.readlink(link).lstrip("/"))
                except OSError:
                    break
    logs = [
        log
        for pod in _listed(root / "var/log/pods")
        if pod.name.endswith(f"_{uid}")
        for folder in _listed(pod)
        for log in _listed(folder)
        if re.fullmatch(r"\d+\.log", log.name)
    ]
    return max(logs, key=_mtime, default=None)


def _listed(folder: Path) -> Iterable[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return ()


def _existing(path: Path) -> Path | None:
    try:
        return path if path.is_file() else None
    except OSError:
        return None


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
