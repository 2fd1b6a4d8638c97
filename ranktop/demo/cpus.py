"""The CPUs of the stand-in's NUMA nodes: half of those that this machine lets it have each, and its ranks run there."""

from __future__ import annotations

import functools
import os

from ranktop.demo.gpus import NODES


@functools.cache
def node_cpus(node: int) -> tuple[int, ...]:
    """CPU numbers of a node; all of them on a machine with too few to divide, where no rank counts as bound."""
    cpus = sorted(os.sched_getaffinity(0))
    share = len(cpus) // NODES
    return tuple(cpus[node * share : (node + 1) * share] if share else cpus)


def cpu_list(cpus: tuple[int, ...]) -> str:
    """As the kernel writes a list of CPUs."""
    return ",".join(map(str, cpus))
