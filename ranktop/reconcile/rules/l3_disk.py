"""The disk under the `file` backend: L3-DISK."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.finding import Finding
from ranktop.reconcile.counters import DISK_FREE
from ranktop.reconcile.rules.evidence import evidence
from ranktop.reconcile.rules.rule import Context
from ranktop.reconcile.trend import trend

_KINDS = {
    "tmpfs": "is memory: what it holds comes on top of the plan's host pools",
    "ramfs": "is memory: what it holds comes on top of the plan's host pools",
    "overlay": "is the container's own layer: what it holds ends with the container",
}


def l3_disk(context: Context) -> Iterator[Finding]:
    """Space or inodes run out, or the directory is on no disk."""
    limits = context.thresholds
    for server, disk in context.sample.storage_disks.items():
        shares = {
            "space": _share(disk.free_bytes, disk.total_bytes),
            "inodes": _share(disk.free_inodes, disk.total_inodes),
        }
        scarce = {name: left for name, left in shares.items() if left is not None and left < limits.disk_warn_share}
        kind = _KINDS.get(disk.file_system or "")
        if not scarce and kind is None:
            continue
        seconds = _seconds_left(context, server)
        parts = [kind] if kind is not None else []
        parts += [f"has {100 * left:.1f} % of its {name} left" for name, left in scarce.items()]
        parts += [f"is full in {seconds:.0f} s at this rate"] if seconds is not None else []
        yield Finding(
            "L3-DISK",
            "critical" if min(scarce.values(), default=1.0) < limits.disk_critical_share else "warn",
            f"{disk.path} ({disk.file_system or 'unknown file system'}) {', and '.join(parts)}",
            scope="server",
            server=server,
            **evidence(
                "measured",
                free_bytes=disk.free_bytes,
                total_bytes=disk.total_bytes,
                free_inodes=disk.free_inodes,
                file_system=disk.file_system,
                seconds_until_full=seconds,
            ),
            advice="the `file` backend removes nothing by itself (0.5.18): give it a disk of its own, large enough, "
            "through SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR at the next planned restart",
        )


def _share(free: int | None, total: int | None) -> float | None:
    return free / total if free is not None and total else None


def _seconds_left(context: Context, server: str) -> float | None:
    """By a straight line through the free space of the last ten minutes."""
    track = context.history.track((server, "", DISK_FREE), context.thresholds.l2_idle_seconds)
    fall = trend(track.seconds, track.values)
    if fall is None or fall.per_second >= 0 or fall.r2 < context.thresholds.disk_trend_r2:
        return None
    return track.values[-1] / -fall.per_second
