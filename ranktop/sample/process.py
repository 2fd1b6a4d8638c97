"""SGLang's processes: one main process a server, one scheduler a rank."""

from __future__ import annotations

import functools
from typing import Annotated

from msgspec import Struct

from ranktop.sample.fields import gauge, label


class RankTag(Struct, frozen=True, array_like=True, gc=False, order=True):
    """Where a scheduler stands, from its title `sglang::scheduler[_DPn][_PPn][_ATTN_CPn][_MOE_DPn][_TPn][_EPn]`.

    A part is None where SGLang prints none (its size is 1). Ordered by dp, pp, cp, moe_dp, tp, ep.
    Source: `managers/scheduler.py` of SGLang 0.5.16 to 0.5.23, same in all eight.
    """

    dp: int | None = None
    pp: int | None = None
    cp: int | None = None
    moe_dp: int | None = None
    tp: int | None = None
    ep: int | None = None

    def __str__(self) -> str:
        """SGLang's own log tag, for example `DP0 PP0 ATTN_CP3 TP7 EP1`; a bare scheduler is `TP0`."""
        return _log_tag(self)

    @property
    def order(self) -> tuple[int, ...]:
        """Sort key: dp, pp, cp, tp, then the rest; an absent part counts as 0."""
        return tuple(number or 0 for number in (self.dp, self.pp, self.cp, self.tp, self.moe_dp, self.ep))


@functools.lru_cache(maxsize=8192)
def _log_tag(tag: RankTag) -> str:
    """Asked for many times a second, of few tags."""
    parts = (
        ("DP", tag.dp),
        ("PP", tag.pp),
        ("ATTN_CP", tag.cp),
        ("MOE_DP", tag.moe_dp),
        ("TP", tag.tp),
        ("EP", tag.ep),
    )
    return " ".join(f"{name}{number}" for name, number in parts if number is not None) or "TP0"


class RankProcess(Struct, frozen=True, array_like=True, gc=False):
    """One scheduler process, from `/proc/PID/{status,stat,cmdline}` (proc(5))."""

    server: Annotated[str, label("server", 15, "id of the server: host:port, else pid:N")]
    tag: RankTag
    pid: Annotated[int, label("pid", 8, "process id in the reader's namespace")]
    start_ticks: Annotated[int, label("start", 12, "start time in clock ticks since boot: tells a reused pid")]
    state: Annotated[str, label("st", 2, "R, S, D, Z, T of status")]
    parent_pid: Annotated[int | None, label("ppid", 8, "parent process")] = None
    rss_anon_bytes: Annotated[int | None, gauge("anon", "bytes", 9, "RssAnon")] = None
    rss_file_bytes: Annotated[int | None, gauge("file", "bytes", 9, "RssFile")] = None
    rss_shmem_bytes: Annotated[int | None, gauge("shmem", "bytes", 9, "RssShmem: resident host pools")] = None
    hugetlb_bytes: Annotated[int | None, gauge("huge", "bytes", 9, "HugetlbPages: not part of RSS")] = None
    vm_size_bytes: Annotated[int | None, gauge("vsize", "bytes", 9, "VmSize")] = None
    vm_hwm_bytes: Annotated[int | None, gauge("peak", "bytes", 9, "VmHWM: peak resident size")] = None
    vm_pin_bytes: Annotated[int | None, gauge("rdma", "bytes", 9, "VmPin: registered for RDMA, never CUDA pins")] = None
    vm_locked_bytes: Annotated[int | None, gauge("mlock", "bytes", 9, "VmLck: mlock, never CUDA pins")] = None
    cpus_allowed: Annotated[str | None, label("cpus", 12, "Cpus_allowed_list")] = None
    mems_allowed: Annotated[str | None, label("mems", 8, "Mems_allowed_list (cpuset only, not the policy)")] = None
    memlock_limit_bytes: Annotated[int | None, gauge("ulimit", "bytes", 9, "RLIMIT_MEMLOCK, -1 unlimited")] = None
    cuda_visible_devices: Annotated[str | None, label("visible", 12, "CUDA_VISIBLE_DEVICES at exec, if readable")] = (
        None
    )
    orphan: Annotated[bool | None, label("orphan", 6, "True: no server process above it any more")] = None
    namespace_pids: tuple[int, ...] = ()
    """NSpid: the pid in every pid namespace from the reader's down to the rank's own."""


class ServerProcess(Struct, frozen=True, array_like=True, gc=False):
    """The main process of one SGLang server. `argv` is its own command line, secrets dropped."""

    id: Annotated[str, label("server", 15, "host:port, else pid:N")]
    pid: Annotated[int | None, label("pid", 8, "main process; None for a server that is no process of this node")]
    start_ticks: Annotated[int, label("start", 12, "start time in clock ticks since boot")]
    argv: tuple[str, ...] = ()
    state: Annotated[str, label("st", 2, "R, S, D, Z, T of stat")] = "?"
    url: Annotated[str | None, label("url", 24, "where its HTTP server should answer from here")] = None
    demo_state_path: str | None = None
    """RANKTOP_DEMO_STATE of its environment: a stand-in node of `ranktop demo`."""
    own_network: Annotated[bool | None, label("own net", 7, "False: listens in another network namespace")] = None
    untitled_children: Annotated[int | None, gauge("untitled", "count", 8, "spawned children without a title yet")] = (
        None
    )


class Processes(Struct, frozen=True, array_like=True):
    """All SGLang processes seen, ranks in rank order within their server."""

    servers: tuple[ServerProcess, ...] = ()
    ranks: tuple[RankProcess, ...] = ()
    boot_unix_seconds: float | None = None
    """Boot time (`btime` of /proc/stat), so that `start_ticks` can be read as a time of day."""
    ticks_per_second: int = 100
    only_pids: tuple[int, ...] = ()
    """The main processes or ranks that were asked for; none: all of the node were."""
