"""All sources of this node, and the files that the user names, as one body of evidence. Nothing here is changed."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from collectors.hostmem import parse_host
from collectors.numa import parse_node
from collectors.processes import ProcessesCollector
from collectors.procfs import read_file
from collectors.simulated import DemoStates, is_simulated
from ranktop.plan import LaunchRequest
from ranktop.reconcile.launches import Launch
from ranktop.reconcile.wording import counted
from ranktop.sample import Host, NoData, Processes, SourceError
from ranktop.why.cgroups import remains
from ranktop.why.evidence import Evidence, KernelLog, Reading, Remains, ServerLog
from ranktop.why.kernel import kernel_file, kernel_logs, simulated_logs
from ranktop.why.logs import container_logs, read_logs
from ranktop.why.prometheus import ask
from ranktop.why.recordings import read_recordings


class Where(Struct, frozen=True):
    """What to look at. Files that are named replace what would be looked for; the roots are for fixture trees."""

    kernel_log: Path | None = None
    logs: tuple[Path, ...] = ()
    recordings: tuple[str, ...] = ()
    prometheus: str | None = None
    launch: LaunchRequest | None = None
    launches: tuple[Launch, ...] = ()
    proc_root: str = "/proc"
    sys_root: str = "/sys"
    pods_folder: str = "/var/log/pods"
    kmsg_path: str = "/dev/kmsg"
    journal_command: str = "journalctl"


def gather(where: Where, since_unix_seconds: float, now_unix_seconds: float) -> Evidence:
    """Reads every source once. What cannot be read is told in `readings`, never raised."""
    kernel, readings = (
        kernel_file(where.kernel_log)
        if where.kernel_log is not None
        else kernel_logs(since_unix_seconds, kmsg_path=where.kmsg_path, command=where.journal_command)
    )
    is_covered = where.kernel_log is None and any(reading.state == "read" for reading in readings)
    groups, group_reading = _groups(where)
    logs, pasted, log_readings = _logs(where, since_unix_seconds)
    recordings, recording_readings = read_recordings(where.recordings)
    host, host_reading = _host(where.proc_root)
    readings += [group_reading, *log_readings, *recording_readings, host_reading]
    processes = _processes(where.proc_root)
    if where.kernel_log is None and is_simulated(processes.servers):
        played, played_readings = simulated_logs(processes, DemoStates(where.proc_root), since_unix_seconds)
        kernel += played
        readings += played_readings
    orphans = [rank for rank in processes.ranks if rank.orphan]
    if orphans:
        readings.append(Reading(f"processes under {where.proc_root}", "read", f"{len(orphans)} ranks without a server"))
    series = []
    if where.prometheus is not None:
        series, reading = ask(where.prometheus, now_unix_seconds - since_unix_seconds)
        readings.append(reading)
    recorded_events = [KernelLog(one.source, one.events) for one in recordings]
    return Evidence(
        readings=tuple(readings),
        kernel=(*kernel, *pasted, *recorded_events),
        kernel_since_unix_seconds=since_unix_seconds if is_covered else None,
        remains=tuple(groups),
        logs=tuple(logs),
        recordings=tuple(recordings),
        orphans=tuple(orphans),
        series=tuple(series),
        launch=where.launch,
        launches=where.launches,
        host_total_bytes=host.total_bytes,
        node_total_bytes=_nodes(where.sys_root),
        kills_since_boot=host.oom_kill_count,
    )


def _groups(where: Where) -> tuple[list[Remains], Reading]:
    source = f"cgroups under {where.sys_root}"
    try:
        found = remains(where.sys_root, where.pods_folder)
    except NoData as absent:
        return [], Reading(source, "absent", str(absent))
    kills = sum(group.oom_kill_count for group in found)
    return found, Reading(source, "read", f"{counted(kills, 'kill')} counted" if kills else "no kill counted")


def _logs(where: Where, since_unix_seconds: float) -> tuple[list[ServerLog], list[KernelLog], list[Reading]]:
    if where.logs:
        return read_logs(where.logs)
    paths = container_logs(Path(where.pods_folder), since_unix_seconds)
    if not paths:
        detail = f"no log of SGLang under {where.pods_folder} was written since (give --log FILE)"
        return [], [], [Reading("container logs", "absent", detail)]
    logs, kernel, readings = read_logs(paths)
    return [_since(log, since_unix_seconds) for log in logs], kernel, readings


def _since(log: ServerLog, since_unix_seconds: float) -> ServerLog:
    return replace(
        log,
        events=tuple(event for event in log.events if event.at_unix_seconds >= since_unix_seconds),
        killed=tuple(gone for gone in log.killed if gone.at_unix_seconds >= since_unix_seconds),
    )


def _host(proc_root: str) -> tuple[Host, Reading]:
    """MemTotal, and how many kills the kernel has counted since it booted."""
    source = f"{proc_root}/vmstat"
    try:
        host = parse_host(read_file(f"{proc_root}/meminfo"), read_file(source))
    except OSError:
        return Host(), Reading(source, "absent", "not readable")
    kills = host.oom_kill_count
    if kills is None:
        return host, Reading(source, "absent", "no count of kills (a kernel before 4.13)")
    return host, Reading(source, "read", f"{counted(kills, 'kill')} since boot, of anybody")


def _nodes(sys_root: str) -> dict[int, int]:
    """MemTotal by NUMA node."""
    found: dict[int, int] = {}
    for path in Path(sys_root, "devices/system/node").glob("node[0-9]*"):
        try:
            node = parse_node(int(path.name[4:]), read_file(f"{path}/meminfo"))
        except (OSError, ValueError):
            continue
        if node.total_bytes is not None:
            found[node.node] = node.total_bytes
    return found


def _processes(proc_root: str) -> Processes:
    try:
        return ProcessesCollector(proc_root).read(None, 0.0)
    except (NoData, SourceError):
        return Processes((), ())
