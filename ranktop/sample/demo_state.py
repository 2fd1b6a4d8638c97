"""The state file of a stand-in node: what a laptop cannot have, written by the demo and read by any ranktop.

The demo's main process names the file in `RANKTOP_DEMO_STATE`. Everything in it is shown as `simulated`.
"""

from __future__ import annotations

from msgspec import Struct

from ranktop.sample.gpu import Gpus
from ranktop.sample.host import Cgroup, Host, NumaNode
from ranktop.sample.pool import Placement

MAX_BYTES = 1 << 20


class DemoState(Struct, frozen=True):
    """One instant of the simulated hardware. All parts carry `source="simulated"`."""

    at_unix_seconds: float
    scenario: str
    host: Host
    numa: tuple[NumaNode, ...]
    gpus: Gpus
    placements: dict[int, tuple[Placement, ...]]
    """By pid of the rank. A start address of 0 stands for every pool of that rank."""
    cgroups: dict[int, Cgroup] = {}
    """By pid of the rank. Empty: no pod is simulated."""
    kernel_lines: tuple[str, ...] = ()
    """What the kernel log would hold, oldest first, each line after its time in ISO 8601."""
    schema: int = 1
