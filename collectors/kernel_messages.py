"""What the kernel says of deaths, GPUs and pins: its messages as events.

Wordings: mm/oom_kill.c, mm/memcontrol.c and kernel/hung_task.c of Linux 5.4 to 6.18; NVRM of the NVIDIA driver 470 to
595; amdgpu's host mapping failure as users reported it.
"""

from __future__ import annotations

import re
from typing import Any

from collectors.nvml_device import pci_address
from ranktop.sample import Event

_OOM_CAUSE = re.compile(r"oom-kill:constraint=(\w+),(.*)")
_KILLED = re.compile(
    r"(Memory cgroup out of memory|Out of memory)[^:]*: Killed process (\d{1,10}) \((.*?)\),? (?=total-vm)(.*)"
)
_SIZES = re.compile(r"(total-vm|anon-rss|file-rss|shmem-rss|pgtables):(\d{1,15})kB")
_OOM_GROUP = re.compile(r"Tasks in (\S+) are going to be killed due to memory\.oom\.group set")
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d{1,6})(?:, (.*))?")
_XID_PID = re.compile(r"pid='?(\d{1,10})")
_XID_NAME = re.compile(r"name=([^,<]+)")
_XID_ROOT = re.compile(r"previous Xid (\d{1,6})")
_PIN_FAILED = re.compile(
    r"Cannot map memory with base addr (0x[0-9a-fA-F]{1,16}) and size of (0x[0-9a-fA-F]{1,16}) pages"
)
_PAGE_TABLE = re.compile(r"NVRM: .*failed to allocate page table")
_API_MISMATCH = re.compile(
    r"NVRM: API mismatch: .*version (\d[\d.]*\d),.*kernel module has.* version (\d[\d.]*\d)", re.S
)
_HUNG = re.compile(r"INFO: task (.+):(\d{1,10}) blocked for more than (\d{1,9}) seconds")
_PAGE_BYTES = 4096
_CAUSES_KEPT = 64


class KernelMessages:
    """Turns messages, in order, into events. An OOM kill is told in two lines, cause before victim."""

    def __init__(self) -> None:
        self._causes: dict[int, dict[str, str]] = {}

    def event(self, text: str, at_unix_seconds: float) -> Event | None:
        """The event in one message, None for a message that ranktop does not read."""
        text = text.strip()
        cause = _OOM_CAUSE.search(text)
        if cause is not None:
            self._remember(cause[1], cause[2])
            return None
        found = self._killed(text) or _simple(text)
        return Event(at_unix_seconds, found[0], text, fields=found[1]) if found is not None else None

    def _remember(self, constraint: str, rest: str) -> None:
        # Paths of cgroups can hold commas: a field begins at `,name=`.
        pairs = re.findall(r"(?:^|,)([a-z_]+)=(.*?)(?=,[a-z_]+=|,global_oom|$)", rest)
        values = dict(pairs) | {"constraint": constraint}
        pid = values.get("pid", "")
        if pid.isdecimal() and len(pid) <= 10:
            if len(self._causes) >= _CAUSES_KEPT:
                self._causes.clear()
            self._causes[int(pid)] = values

    def _killed(self, text: str) -> tuple[str, dict[str, Any]] | None:
        match = _KILLED.search(text)
        if match is None:
            return None
        pid = int(match[2])
        cause = self._causes.pop(pid, {})
        fields: dict[str, Any] = {"pid": pid, "comm": match[3], "memcg": match[1].startswith("Memory cgroup")}
        for name, kib in _SIZES.findall(match[4]):
            fields[f"{name.replace('-', '_')}_bytes"] = int(kib) * 1024
        for name in ("constraint", "oom_memcg", "task_memcg", "mems_allowed", "nodemask"):
            if name in cause:
                fields[name] = cause[name]
        return "oom_kill", fields


def _simple(text: str) -> tuple[str, dict[str, Any]] | None:
    if match := _XID.search(text):
        return "xid", _xid_fields(match)
    if match := _OOM_GROUP.search(text):
        return "oom_group", {"memcg": match[1]}
    if match := _PIN_FAILED.search(text):
        pages = int(match[2], 16)
        return "pin_failed", {"address": int(match[1], 16), "pages": pages, "size_bytes": pages * _PAGE_BYTES}
    if _PAGE_TABLE.search(text):
        return "pin_failed", {}
    if match := _API_MISMATCH.search(text):
        return "driver_mismatch", {"library_version": match[1], "driver_version": match[2]}
    if match := _HUNG.search(text):
        return "hung_task", {"comm": match[1], "pid": int(match[2]), "blocked_seconds": int(match[3])}
    return None


def _xid_fields(match: re.Match[str]) -> dict[str, Any]:
    """The XID, its GPU (NVRM leaves the function out of the address), the process, and the XID that led to it."""
    rest = match[3] or ""
    address = match[1] if "." in match[1] else f"{match[1]}.0"
    fields: dict[str, Any] = {"xid": int(match[2]), "pci_bus_id": pci_address(address)}
    if pid := _XID_PID.search(rest):
        fields["pid"] = int(pid[1])
    if name := _XID_NAME.search(rest):
        fields["comm"] = name[1].strip()
    if root := _XID_ROOT.search(rest):
        fields["caused_by_xid"] = int(root[1])
    return fields
