"""Cases of the case log on GPUs (kind 6), with inputs of the project's own."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.sample import Sample
from support.cases_memory import GLM, HICACHE
from support.inspect_case import Case, Code, Seen
from support.node_text import stream
from support.samples import healthy

XID = "kernel: NVRM: Xid (PCI:0000:{}:00): {}\n"


def orphaned() -> list[Sample]:
    """TP0's server is gone; it lives on under pid 1 and keeps its HBM."""
    found: list[Sample] = []
    for seconds in range(0, 400, 10):
        sample = healthy(float(seconds))
        assert sample.processes is not None
        if seconds > 5:
            rank = replace(sample.processes.ranks[0], orphan=True, parent_pid=1)
            sample = replace(
                sample,
                processes=replace(sample.processes, servers=(), ranks=(rank,)),
                metrics={},
                infos={},
            )
        found.append(sample)
    return found


CASES = (
    Case(
        78,
        "NVML is broken, and what is loaded",
        {
            "smi.txt": "$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n"
            "$ cat /proc/driver/nvidia/version\n"
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01\n"
        },
        codes=(Code("NVML-BROKEN", "warn"),),
        holds=lambda found: "590.48.01" in found.verdict.findings[0].message,
    ),
    Case(
        80,
        "XID 45 on four GPUs, caused by 145 and 149",
        {
            "dmesg": XID.format("dc", "45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149")
            + XID.format("ed", "45, pid=1818992, name=python3, Ch 0000000c caused by previous Xid 145")
        },
        codes=(Code("GPU-XID", "critical", evidence={"xid": 149, "victim_pids": [1818990, 1818992]}),),
    ),
    Case(
        82,
        "device staging with HiCache is part of the plan",
        {"run.sh": f"{GLM} {HICACHE} --hicache-ratio 2 --hicache-mem-layout page_first\n"},
        holds=lambda found: found.verdict.servers[0].plan.ranks[0].device.staging_bytes == 251_756_544,
    ),
    Case(
        83,
        "a GPU in MIG mode tells no memory",
        {
            "smi.csv": "index, name, memory.total [MiB], memory.used [MiB]\n"
            "0, NVIDIA H100 80GB HBM3, [N/A], [N/A]\n1, NVIDIA H100 80GB HBM3, 81559 MiB, 1024 MiB\n"
        },
        holds=lambda found: (
            [(gpu.total_bytes, gpu.used_bytes) for gpu in found.verdict.sample.gpus.gpus]
            == [(None, None), (81_559 << 20, 1 << 30)]
        ),
    ),
    Case(
        85,
        "a scheduler without its server holds memory",
        {"samples.jsonl": stream(orphaned())},
        codes=(Code("HBM-ORPHAN", "breach", ("TP0",), {"hbm_bytes": 137 * 10**9}),),
        lines=(Seen("TP0", "hbm.process", 137 * 10**9),),
    ),
)
