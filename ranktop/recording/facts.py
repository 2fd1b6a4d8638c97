"""What a recording says of itself: the rows of `meta`."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping

import msgspec

import ranktop
from ranktop.clock import iso_utc
from ranktop.plan import LaunchRequest
from ranktop.reconcile import Reconciler, Thresholds

GIVEN_LAUNCH = "given_launch"
THRESHOLDS = "thresholds"
HOST, BOOT = "host", "boot_id"
CUT_FROM = "cut_from"


def facts(at_unix_seconds: float, *, interval_seconds: float, given: LaunchRequest | None = None) -> dict[str, str]:
    """Who recorded, where and how. `given`: the launch that the user named; it is without secrets."""
    known = {
        "created": iso_utc(at_unix_seconds),
        "ranktop": ranktop.__version__,
        HOST: platform.node(),
        BOOT: boot_id(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": str(os.cpu_count() or 0),
        "time_zone": time.strftime("%Z %z"),
        "interval_seconds": f"{interval_seconds:g}",
        THRESHOLDS: msgspec.json.encode(Thresholds()).decode(),
    }
    if given is not None:
        known[GIVEN_LAUNCH] = msgspec.json.encode(given).decode()
    return known


def boot_id() -> str:
    """The kernel's name for this boot (random(4)); empty where it cannot be read."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def reconciler_of(meta: Mapping[str, str]) -> Reconciler:
    """A reconciler as the recorder had it. ValueError when the recording names a launch that is none."""
    given = meta.get(GIVEN_LAUNCH)
    return Reconciler(given=msgspec.json.decode(given, type=LaunchRequest) if given else None)
