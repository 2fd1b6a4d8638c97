"""Cases of the case log on host memory and NUMA (kinds 1 and 5), with inputs of the project's own."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.sample import Cgroup, Sample
from support.inspect_case import Case, Code, Seen
from support.node_text import (
    allocating,
    allocating_tokens,
    free_g,
    log,
    meminfo,
    pool_log,
    process_files,
    smi_xml,
    stream,
    tags,
)
from support.samples import healthy, pid_of

GIB = 1 << 30
EIGHT = tags(8)
NUMACTL = """available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3
node 0 size: 773706 MB
node 0 free: 501234 MB
node 1 cpus: 4 5 6 7
node 1 size: 774130 MB
node 1 free: 498765 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
"""
GLM = "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp-size 8 --kv-cache-dtype fp8_e4m3"
HICACHE = "--enable-hierarchical-cache"


def golden() -> str:
    """Case 01: eight ranks without tags in a compose log, `free -g` before and after."""
    stamp = "worker-1  | 2026-08-31T18:05:{}Z  {}\n"
    alloc = "INFO memory_pool_host.__init__: Allocating {} host memory for {}"
    lines = [free_g(2267, 40, 1513, 0, 724, 2227)]
    lines += [stamp.format("32.831330", alloc.format("96.00 GB", "hierarchical KV cache."))] * 8
    lines += [
        stamp.format(
            "32.855360",
            "INFO scheduler.init_model_worker: max_total_num_tokens=540928, chunked_prefill_size=8192, "
            "max_prefill_tokens=16384, max_running_requests=128, context_len=524288, available_gpu_mem=10.09 GB",
        )
    ]
    jit = "WARN hicache.can_use_hicache_jit_kernel: Unsupported element_size = 656 for JIT HiCache kernel"
    lines += [stamp.format("57.196364", jit)] * 8
    lines += [stamp.format("57.197020", alloc.format("19.32 GB", "DSA indexer (layout=page_first)."))] * 8
    lines += [stamp.format("59.243745", "INFO backend_factory.create_backend: Creating storage backend 'file' (x)")]
    lines += [stamp.format("59.701249", alloc.format("1.08 GB", "hierarchical KV cache."))] * 8
    return "".join([*lines, free_g(2267, 961, 590, 868, 1594, 1306)])


def with_cgroup(seconds: float, current_bytes: int, limit_bytes: int, *, kills: int = 0) -> Sample:
    """The healthy node, its ranks in one pod with this limit."""
    cgroup = Cgroup(
        "/kubepods/pod1",
        2,
        current_bytes=current_bytes,
        limit_bytes=limit_bytes,
        limit_path="/kubepods/pod1",
        active_file_bytes=0,
        inactive_file_bytes=0,
        slab_reclaimable_bytes=0,
        shmem_bytes=current_bytes * 9 // 10,
        oom_kill_count=kills,
        oom_count=kills,
    )
    sample = healthy(seconds)
    return replace(sample, cgroups={pid_of(tp): cgroup for tp in range(8)})


def leaking(minutes: int) -> list[Sample]:
    """TP0's own memory grows 2 GB an hour beside a pool that stays; ready from the start, L2 full."""
    found: list[Sample] = []
    for step in range(minutes * 2):
        sample = healthy(step * 30.0)
        assert sample.processes is not None
        ranks = tuple(
            replace(rank, rss_anon_bytes=9 * 10**9 + (step * 30 * 2 * 10**9 // 3600 if rank.tag.tp == 0 else 0))
            for rank in sample.processes.ranks
        )
        found.append(replace(sample, processes=replace(sample.processes, ranks=ranks)))
    return found


def torn_down() -> list[Sample]:
    """TP2 hangs in the kernel while its memory is unpinned, and its GPU is still full."""
    found: list[Sample] = []
    for seconds in range(60):
        sample = healthy(float(seconds))
        assert sample.processes is not None
        ranks = tuple(
            replace(rank, state="D") if rank.tag.tp == 2 and seconds > 5 else rank for rank in sample.processes.ranks
        )
        servers = () if seconds > 5 else sample.processes.servers
        found.append(replace(sample, processes=replace(sample.processes, ranks=ranks, servers=servers)))
    return found


def loading() -> list[Sample]:
    """TP0's primary pool is being populated: a quarter a minute. No server answers yet."""
    found: list[Sample] = []
    for step in range(4):
        sample = healthy(step * 60.0)
        assert sample.processes is not None
        ranks = tuple(
            replace(rank, rss_shmem_bytes=(1 + step) * 30 * 10**9) if rank.tag.tp == 0 else rank
            for rank in sample.processes.ranks
        )
        maps = {
            pid: tuple(replace(mapping, resident=None) for mapping in own[:1]) if pid == pid_of(0) else own
            for pid, own in sample.mappings.items()
        }
        infos = {server: replace(info, is_ready=False) for server, info in sample.infos.items()}
        processes = replace(sample.processes, ranks=ranks)
        found.append(replace(sample, processes=processes, mappings=maps, infos=infos, metrics={}))
    return found


def tree(gpu_node: int, *more_flags: str) -> dict[str, str]:
    """One rank whose pool lies on node 0, as copies of `/proc` and `/sys`, with what nvidia-smi says of its GPU."""
    launch = ("python", "-m", "sglang.launch_server", "--model-path", "zai-org/GLM-5.2-FP8", "--tp-size", "1")
    flags = ("--kv-cache-dtype", "fp8_e4m3", HICACHE, "--hicache-size", "1", *more_flags)
    status = "RssAnon:\t 100 kB\nRssShmem:\t 1000000 kB\nVmSize:\t 2000000 kB\n"
    maps = "7f1f00000000-7f1f3b9ad000 rw-s 00000000 00:01 34    /dev/zero (deleted)\n"
    numa_maps = (
        "7f1f00000000 default file=/dev/zero\\040(deleted) dirty=196608 active=0 N0=196608 kernelpagesize_kB=4\n"
    )
    limits = "Max locked memory         65536                65536                bytes     \n"
    files = {
        **process_files(100, (*launch, *flags), 1),
        **process_files(
            101,
            ("sglang::scheduler",),
            100,
            status=status,
            more={"maps": maps, "numa_maps": numa_maps, "limits": limits},
        ),
        "proc/stat": "btime 1790000000\n",
        "proc/meminfo": meminfo(256 << 20, 128 << 20),
        "sys/devices/system/node/online": "0-1\n",
    }
    for node in (0, 1):
        folder = f"sys/devices/system/node/node{node}"
        files |= {
            f"{folder}/meminfo": f"Node {node} MemTotal: 134217728 kB\nNode {node} MemFree: 67108864 kB\n",
            f"{folder}/distance": "10 21\n" if node == 0 else "21 10\n",
            f"{folder}/cpulist": "0-31\n" if node == 0 else "32-63\n",
        }
    files["gpus.xml"] = smi_xml(
        [{"bus": "53", "total": 143771, "used": 1000, "free": 142000, "pid": 101, "process": 900}]
    )
    files["topo.txt"] = f"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t32-63\t{gpu_node}\tN/A\n"
    return {f"node/{name}": text for name, text in files.items()}


def _node_pools_within_the_unit(found: object) -> object:
    line = found.verdict.node.line("host.pools")  # type: ignore[attr-defined]
    return abs(line.planned / GIB - 867.3) < 0.1 and line.source == "inferred"


CASES = (
    Case(
        1,
        "golden: planned, logged and mapped agree",
        {"worker.log": golden()},
        lines=(
            Seen("TP0", "host.primary", 96_000_000_000, 96_002_629_632),
            Seen("TP7", "host.indexer", 19_320_000_000, 19_317_602_304),
            Seen("TP7", "host.draft", 1_080_000_000, 1_080_741_888),
            Seen("", "host.pools", 868 * GIB),
        ),
        holds=_node_pools_within_the_unit,
        never=("HOST-POOL-OVER", "HOST-POOL-UNDER", "HOST-POOL-MISSING", "HOST-HEADROOM"),
        options={"sglang": "0.5.13.post1"},
    ),
    Case(
        2,
        "4 x 40 GB said before the start, more than half of RAM",
        {
            "run.sh": "python3 -m sglang.launch_server --model-path Llama-3.1-8B-Instruct --tp 4 "
            "--enable-hierarchical-cache --hicache-size 40\n",
            "free.txt": free_g(251, 20, 180, 0, 50, 230),
        },
        codes=(Code("PLAN-HALF-OF-RAM", "info"),),
        holds=lambda found: round(found.verdict.servers[0].plan.node.allocated_bytes / 1e9) == 160,
    ),
    Case(
        3,
        "ratio 10: 271.55 GB a rank x 4 against what is free",
        {
            "run.sh": f"{GLM} --tp-size 4 {HICACHE} --hicache-ratio 10\n",
            "server.log": log("max_total_num_tokens=441800"),
            "meminfo": meminfo(2_000_000_000, 880_000_000),
        },
        codes=(Code("PLAN-HOST-OVERCOMMIT", "critical"),),
        holds=lambda found: abs(found.verdict.servers[0].plan.node.combined_bytes / 1e9 - 4 * 271.55) < 0.1,
    ),
    Case(
        3,
        "the kernel's kill is named, and the plan fits the log without a launch",
        {
            "server.log": log(allocating(226.06), tag="TP2")
            + log(
                "Unsupported element_size = 656 for JIT HiCache kernel",
                allocating(45.49, "DSA indexer (layout=page_first)"),
            ),
            "dmesg": "Out of memory: Killed process 1635676 (sglang::schedul) total-vm:1049023412kB, "
            "anon-rss:100kB, file-rss:0kB, shmem-rss:250396952kB, UID:0 pgtables:490000kB oom_score_adj:0\n",
        },
        codes=(Code("HOST-OOM-KILL", "critical"),),
        lines=(Seen("TP0", "host.indexer", 45_490_000_000), Seen("TP2", "host.primary", 226_060_000_000)),
    ),
    Case(
        6,
        "pools against this job's share, not the node's memory",
        {"samples.jsonl": stream([with_cgroup(second, 1_180 * 10**9, 1_199 * 10**9) for second in range(3)])},
        codes=(Code("HOST-CGROUP", "warn"),),
    ),
    Case(
        7,
        "the reserve that the message does not print",
        {
            "server.log": log(
                "ValueError: Not enough host memory available. Requesting 40.00 GB but only have 44.87 GB free. "
                "Please reduce the size of the hierarchical cache."
            )
        },
        codes=(Code("PLAN-HOST-GATE", "breach", ("TP0",), {"needed_bytes": 50_737_418_240}),),
    ),
    Case(
        9,
        "the huge pages that the check does not see",
        {
            "node/proc/meminfo": meminfo(64 << 20, 3 << 20),
            "node/proc/stat": "btime 1790000000\n",
            "node/sys/devices/system/node/online": "0\n",
            "node/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "20480\n",
            "node/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "20480\n",
            "node/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages": "0\n",
            "node/run.sh": f"SGLANG_HUGEPAGE_SIZE=2MB {GLM} --tp-size 1 {HICACHE} --hicache-size 7\n",
        },
        codes=(Code("PLAN-HUGEPAGES", "warn"),),
        holds=lambda found: found.verdict.node.line("host.hugepages").seen == 40 * GIB,
    ),
    Case(
        11,
        "the pod's limit and its kill",
        {
            "samples.jsonl": stream(
                [with_cgroup(0, 291 * GIB, 400 * GIB), *(with_cgroup(s, 399 * GIB, 400 * GIB, kills=1) for s in (1, 2))]
            )
        },
        codes=(Code("HOST-CGROUP", "critical"),),
    ),
    Case(
        12,
        "the kernel refused to map: not pinned",
        {"dmesg": "[ 12.5] Cannot map memory with base addr 0x7f134c660000 and size of 0xf179a0 pages\n"},
        codes=(Code("HOST-NOT-PINNED", "breach", evidence={"size_bytes": 0xF179A0 * 4096}),),
    ),
    Case(
        14,
        "cudaHostRegister's size and code",
        {
            "server.log": log(
                "RuntimeError: cudaHostRegister failed (rc=1, invalid argument) for ptr=0x6f6388400000 "
                "size=531470745600; host buffer is not pinned and device transfers may silently return stale data",
                tag="TP3",
            )
        },
        codes=(Code("HOST-NOT-PINNED", "breach", ("TP3",), {"size_bytes": 531_470_745_600}),),
    ),
    Case(
        16,
        "anonymous memory grows beside a pool that stays",
        {"samples.jsonl": stream(leaking(70))},
        codes=(Code("HOST-ANON-LEAK", "warn", ("TP0",)),),
    ),
    Case(
        17,
        "a rank in D holds its HBM while the kernel unpins",
        {"samples.jsonl": stream(torn_down())},
        codes=(Code("HOST-TEARDOWN", "warn"),),
    ),
    Case(
        19,
        "two pools of the whole size",
        {
            "server.log": pool_log(("TP0", "TP1"), allocating(100), allocating(100, "hierarchical Mamba cache")),
            "run.sh": "python -m sglang.launch_server --model-path x/llama-3.1-8b --tp-size 2 "
            f"{HICACHE} --hicache-size 100\n",
        },
        lines=(
            Seen("TP1", "host.other", 100_000_000_000),
            Seen("", "host.pools", 400_000_000_000, status="over"),
        ),
    ),
    Case(
        20,
        "RLIMIT_MEMLOCK of a rank that registers for RDMA",
        tree(1, "--disaggregation-mode", "prefill", "--disaggregation-transfer-backend", "mooncake"),
        codes=(Code("PLAN-MEMLOCK", "warn"),),
        holds=lambda found: found.verdict.sample.processes.ranks[0].memlock_limit_bytes == 65_536,
    ),
    Case(
        21,
        "78 index layers or 21: told from tokens and bytes",
        {
            "server.log": pool_log(
                EIGHT,
                allocating_tokens(1_875_072, 95.94),
                allocating(5.20, "DSA indexer (layout=page_first)"),
            ),
            "run.sh": f"{GLM} {HICACHE} --hicache-size 96\n",
        },
        holds=lambda found: (
            found.verdict.servers[0].calibration.index_layers == 21
            and found.verdict.servers[0].calibration.row_bytes == 656
        ),
    ),
    Case(
        23,
        "four replicas together",
        {
            "server.log": pool_log([f"DP{n} TP{n}" for n in range(4)], allocating(354.94)),
            "meminfo": meminfo(3_000_000_000, 1_500_000_000),
        },
        lines=(Seen("DP3 TP3", "host.primary", 354_940_000_000), Seen("", "host.pools", 1_419_760_000_000)),
    ),
    Case(
        71,
        "membind refused",
        {
            "server.log": "set_mempolicy: Operation not permitted\nsetting membind: Invalid argument\n",
            "numactl.txt": NUMACTL,
        },
        codes=(Code("NUMA-NO-PERMISSION", "info"),),
    ),
    Case(
        74,
        "pages on node 0, GPU on node 1",
        tree(1),
        codes=(Code("NUMA-REMOTE", "warn", ("TP0",)),),
        lines=(Seen("TP0", "numa.local", 0.0, 100.0, "under"),),
    ),
    Case(74, "pages where the GPU is", tree(0), never=("NUMA-REMOTE",)),
    Case(
        76,
        "registering, not hanging",
        {"samples.jsonl": stream(loading())},
        codes=(Code("HOST-POOL-LOADING", "info"),),
    ),
    Case(
        77,
        "N/A and lists that are no ranges",
        {
            "topo.txt": "        GPU0    GPU1    GPU4    CPU Affinity     NUMA Affinity   GPU NUMA ID\n"
            "GPU0     X      NV18    NV18    4,6,8,10,12      0               N/A\n"
            "GPU1    NV18     X      NV18    4,6,8,10,12      N/A             N/A\n"
            "GPU4    NV18    NV18     X      1,3,5,7,9,11     1               N/A\n"
        },
        holds=lambda found: (
            [(gpu.index, gpu.numa_node) for gpu in found.verdict.sample.gpus.gpus] == [(0, 0), (1, None), (4, 1)]
        ),
    ),
)
