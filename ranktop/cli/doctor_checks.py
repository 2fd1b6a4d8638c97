"""The checks of `ranktop doctor`: every source tried as the collectors use it, and what its lack costs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from collectors.procfs import line_value, read_file
from ranktop.reconcile.wording import counted
from ranktop.sample import Collector, NoData, Processes, SourceError

_PATIENCE_SECONDS = 10.0

Answer = Literal["yes", "no", "not here"]

_CAPABILITIES = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_SYSLOG": 34}


class Check(Struct, frozen=True):
    """One source. `costs` and `remedy` are empty when it can be read."""

    subject: str
    answer: Answer
    detail: str
    costs: str = ""
    remedy: str = ""


class _Source(Struct, frozen=True):
    """A collector to try, and what is lost without it."""

    subject: str
    collector: Collector
    costs: str
    remedy: str
    needs_ranks: bool = False


def all_checks(proc_root: str, sys_root: str) -> Iterator[Check]:
    """Every check in turn, each as soon as it is known."""
    from collectors.processes import ProcessesCollector
    from ranktop.cli.doctor_cgroup import dies_with_the_ranks

    yield who_reads(proc_root)
    processes = ProcessesCollector(proc_root)
    try:
        seen = processes.read(None, 0.0)
    except SourceError as error:
        yield Check("processes", "no", str(error), "nothing is seen", "mount /proc, or name it with --proc-root")
        return
    yield servers_seen(seen, sees_all_processes(proc_root))
    yield pids_as_the_kernel_says_them(proc_root)
    for source in _sources(proc_root, sys_root):
        yield tried(source, seen)
    yield dies_with_the_ranks(proc_root, sys_root, seen.ranks)
    yield pins_counted(proc_root)
    yield libnuma(sys_root)
    yield journal()


def _sources(proc_root: str, sys_root: str) -> Iterator[_Source]:
    from collectors.cgroup import CgroupCollector
    from collectors.hostmem import HostMemCollector
    from collectors.kernellog import KernelLogCollector
    from collectors.numa import NumaNodesCollector
    from collectors.nvml import NvmlCollector
    from collectors.nvml_session import NvmlSession
    from collectors.placement import PlacementCollector
    from collectors.pools import PoolsCollector

    pools = PoolsCollector(proc_root)
    yield _Source("host memory", HostMemCollector(proc_root, sys_root), "no headroom, no swap, no pins", "mount /proc")
    yield _Source(
        "NUMA nodes", NumaNodesCollector(sys_root, proc_root), "no headroom of a node", "mount /sys (read-only will do)"
    )
    yield _Source(
        "host pools (/proc/PID/maps)",
        pools,
        "pools are known from the log and from sums only, HOST-POOL-* cannot fire",
        "run as the ranks' user or as root: sudo ranktop; in a container add --cap-add SYS_PTRACE",
        needs_ranks=True,
    )
    yield _Source(
        "page placement (move_pages)",
        PlacementCollector(lambda: pools.latest),
        "NUMA-REMOTE cannot fire; per-node sums remain",
        "run as the ranks' user, or add CAP_SYS_PTRACE (and CAP_SYS_NICE under docker's seccomp profile)",
        needs_ranks=True,
    )
    yield _Source(
        "cgroups of the ranks",
        CgroupCollector(proc_root, sys_root),
        "HOST-CGROUP cannot fire: the limit that kills a pod is not seen",
        "mount the host's /sys/fs/cgroup, or run on the host",
        needs_ranks=True,
    )
    yield _Source(
        "GPUs (NVML)",
        NvmlCollector(NvmlSession(proc_root=proc_root), sys_root=sys_root),
        "no HBM, no GPU state",
        "install the NVIDIA driver; in a container run it with --gpus all and NVIDIA_DRIVER_CAPABILITIES=utility",
    )
    yield _Source(
        "kernel log (/dev/kmsg)",
        KernelLogCollector(),
        "OOM kills, XIDs and failed pins have no text",
        "run as root or: sudo sysctl kernel.dmesg_restrict=0; in a container add --device /dev/kmsg --cap-add SYSLOG",
    )


def tried(source: _Source, processes: Processes) -> Check:
    """Read the source once, in a thread of its own: NVML can hang for minutes."""
    from collectors.nvml_worker import Worker

    if source.needs_ranks and not processes.ranks:
        return Check(source.subject, "not here", "no rank runs, so it was not tried")
    worker: Worker[Any] = Worker(f"doctor {source.subject}", lambda: source.collector.read(processes, 0.0))
    worker.ask()
    try:
        value = worker.answer(_PATIENCE_SECONDS)
    except NoData as reason:
        return Check(source.subject, "not here", str(reason), source.costs, source.remedy)
    except SourceError as reason:
        return Check(source.subject, "no", str(reason), source.costs, source.remedy)
    if value is None:
        detail = f"no answer in {_PATIENCE_SECONDS:.0f} s"
        return Check(source.subject, "no", detail, source.costs, "look into dmesg: a driver may hang")
    return Check(source.subject, "yes", described(value, len(processes.ranks)))


def described(value: Any, ranks: int) -> str:
    """What came back, in a few words."""
    if isinstance(value, dict):
        return f"{len(value)} of {ranks} ranks"
    gpus = getattr(value, "gpus", None)
    if gpus is not None:
        ill = [f"GPU {gpu.index} {gpu.state}" for gpu in gpus if gpu.state != "ok"]
        return f"{len(gpus)} GPUs, driver {value.driver_version}" + (f" ({', '.join(ill)})" if ill else "")
    total = getattr(value, "total_bytes", None)
    if total is not None:
        pressure = "with pressure" if value.pressure is not None else "without pressure (boot with psi=1)"
        return f"{total / (1 << 30):.1f} GiB, {pressure}"
    return "readable"


def who_reads(proc_root: str) -> Check:
    """The reader's user and the capabilities that matter."""
    try:
        mask = int(line_value(read_file(f"{proc_root}/self/status", 1 << 16), b"CapEff:") or b"0", 16)
    except (OSError, ValueError):
        mask = 0
    held = [name for name, bit in _CAPABILITIES.items() if mask >> bit & 1]
    return Check("user", "yes", f"uid {os.geteuid()}, {', '.join(held) or 'none of ' + ', '.join(_CAPABILITIES)}")


def sees_all_processes(proc_root: str) -> bool:
    """False where hidepid hides what belongs to others, of which the first process is one."""
    try:
        return bool(read_file(f"{proc_root}/1/stat", 4096))
    except OSError:
        return False


def servers_seen(processes: Processes, sees_all: bool) -> Check:
    """How many servers and ranks were found."""
    found = f"{counted(len(processes.servers), 'SGLang server')}, {counted(len(processes.ranks), 'rank')}"
    if sees_all:
        return Check("processes", "yes", found)
    return Check(
        "processes",
        "no",
        f"{found}; processes of other users are hidden",
        "their servers are not seen",
        "run as root, or remount: sudo mount -o remount,hidepid=0 /proc",
    )


def pids_as_the_kernel_says_them(proc_root: str) -> Check:
    """Whether pids here are those of the host: NVML and the kernel log may tell the host's."""
    try:
        inside = os.readlink(f"{proc_root}/self") != str(os.getpid())
        # The host's first pid namespace has a fixed inode (PROC_PID_INIT_INO of include/linux/proc_ns.h).
        is_host = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
    except OSError:
        return Check("pid namespace", "not here", "cannot be told")
    if is_host or inside:
        return Check("pid namespace", "yes", "the host's")
    return Check(
        "pid namespace",
        "no",
        "a container's own",
        "old drivers and the kernel log tell host pids: a GPU's process may show as `host pid ?`",
        "run on the host, or with hostPID: true (docker: --pid host)",
    )


def pins_counted(proc_root: str) -> Check:
    """Whether this kernel counts long-term pins."""
    try:
        counted = b"nr_foll_pin_acquired" in read_file(f"{proc_root}/vmstat")
    except OSError:
        counted = False
    if counted:
        return Check("pinned pages", "yes", "nr_foll_pin_* of /proc/vmstat, for the whole host")
    return Check(
        "pinned pages", "not here", "no nr_foll_pin_*", "host.pinned stays unknown", "a kernel of 5.7 or later"
    )


def libnuma(sys_root: str) -> Check:
    """Whether libnuma or the numa package is there to hold sysfs against."""
    from collectors.numa_topology import disagreement, library_distances, read_topology

    topology = read_topology(sys_root)
    told = library_distances(topology.nodes)
    if told is None:
        return Check("libnuma", "not here", "not installed or not allowed", "nothing: sysfs tells the same", "")
    differs = disagreement(topology, *told)
    return Check("libnuma", "yes" if differs is None else "no", differs or f"{told[0]} and sysfs agree")


def journal() -> Check:
    """Whether earlier boots can be asked about."""
    if shutil.which("journalctl") is None:
        return Check("kernel journal", "not here", "no journalctl", "`ranktop why` sees this boot only")
    if not os.path.isdir("/var/log/journal"):
        return Check(
            "kernel journal",
            "no",
            "kept in memory only",
            "what killed the last boot is gone with it",
            "sudo mkdir -p /var/log/journal && sudo systemctl restart systemd-journald",
        )
    if not os.access("/var/log/journal", os.R_OK | os.X_OK):
        return Check(
            "kernel journal", "no", "not readable", "`ranktop why` sees this boot only", "join systemd-journal"
        )
    return Check("kernel journal", "yes", "kept over boots")
