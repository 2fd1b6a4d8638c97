"""Run as a program: reads every collector of the host three times, as the poller does, with every open recorded.

Argument: the main process of a server. Prints one line for every path that was opened.
"""

import contextlib
import sys


def main() -> None:
    opened: list[str] = []
    sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)

    from collectors.cgroup import CgroupCollector
    from collectors.hostmem import HostMemCollector
    from collectors.kernellog import KernelLogCollector
    from collectors.numa import NumaNodesCollector
    from collectors.nvml import NvmlCollector
    from collectors.placement import PlacementCollector
    from collectors.pools import PoolsCollector
    from collectors.processes import ProcessesCollector
    from ranktop.sample import NoData, SourceError

    processes = ProcessesCollector(only_pids=[int(sys.argv[1])])
    pools = PoolsCollector()
    others = [
        HostMemCollector(),
        NumaNodesCollector(),
        CgroupCollector(),
        pools,
        PlacementCollector(lambda: pools.latest),
        NvmlCollector(),
        KernelLogCollector(),
    ]
    for cycle in range(3):
        seen = processes.read(None, float(cycle))
        assert seen.ranks, "the server has no rank"
        for collector in others:
            with contextlib.suppress(NoData, SourceError):
                collector.read(seen, float(cycle))
    assert pools.latest, "no pool was looked at"
    print("\n".join(opened))


if __name__ == "__main__":
    main()
