"""Samples of a node as the collectors would read them: TP8, GLM-5.2, FP8, --hicache-size 120, all as planned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from msgspec.structs import replace

from ranktop.plan import compute_plan, parse_launch
from ranktop.plan.plan import Plan
from ranktop.sample import (
    Gpu,
    GpuProcess,
    Gpus,
    Host,
    Mapping,
    MetricsPage,
    NumaNode,
    Placement,
    Processes,
    RankProcess,
    RankTag,
    Sample,
    SeriesKey,
    ServerInfo,
    ServerProcess,
    SourceState,
)

SERVER = "127.0.0.1:30000"
START = 1_790_000_000.0
LAUNCH = (
    "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp-size 8 --kv-cache-dtype fp8_e4m3 "
    "--enable-hierarchical-cache --hicache-size 120 --enable-metrics"
)
LAUNCH_WITHOUT_HICACHE = LAUNCH.replace("--enable-hierarchical-cache --hicache-size 120 ", "")
MAIN_PID = 4200
FIRST_PID = 4242
GIB = 1 << 30


@cache
def plan() -> Plan:
    return compute_plan(parse_launch(LAUNCH), version="0.5.18")


def pid_of(tp: int) -> int:
    return FIRST_PID + tp


def healthy(seconds: float = 0.0, ranks: int = 8) -> Sample:
    """The node `seconds` after the start of the story."""
    at = START + seconds
    return Sample(
        at_unix_seconds=at,
        at_monotonic_seconds=1000.0 + seconds,
        host_name="node-a",
        sources=tuple(
            SourceState(name, "ok", part=part, server=server, at_unix_seconds=at, took_seconds=0.001)
            for name, part, server in (
                ("processes", "processes", None),
                ("hostmem", "host", None),
                ("pools", "mappings", None),
                ("nvml", "gpus", None),
                ("metrics", "metrics", SERVER),
                ("server", "infos", SERVER),
            )
        ),
        processes=Processes(
            servers=(ServerProcess(SERVER, MAIN_PID, 100, tuple(LAUNCH.split()), "S", f"http://{SERVER}"),),
            ranks=tuple(rank_process(tp) for tp in range(ranks)),
            boot_unix_seconds=START - 8000,
        ),
        host=Host(
            total_bytes=1511 * 10**9,
            available_bytes=346 * 10**9,
            foll_pin_acquired_pages=300_000_000,
            foll_pin_released_pages=0,
        ),
        numa=(
            NumaNode(0, total_bytes=755 * 10**9, free_bytes=80 * 10**9, distances=((0, 10), (1, 32))),
            NumaNode(1, total_bytes=756 * 10**9, free_bytes=90 * 10**9, distances=((0, 32), (1, 10))),
        ),
        mappings={pid_of(tp): mappings(tp) for tp in range(ranks)},
        placements={
            pid_of(tp): (Placement(pid_of(tp), 0x7F0000000000, 256, ((tp // 4, 256),)),) for tp in range(ranks)
        },
        gpus=Gpus(
            driver_version="580.105.08",
            gpus=tuple(
                Gpu(
                    index=tp,
                    name="NVIDIA H200",
                    numa_node=tp // 4,
                    total_bytes=150 * 10**9,
                    used_bytes=138 * 10**9,
                    free_bytes=12 * 10**9,
                    processes=(GpuProcess(pid_of(tp), 137 * 10**9),),
                )
                for tp in range(ranks)
            ),
        ),
        metrics={SERVER: page(at)},
        infos={SERVER: ServerInfo(SERVER, version="0.5.18", served_model_name="GLM-5.2-FP8", is_ready=True)},
    )


def rank_process(tp: int) -> RankProcess:
    return RankProcess(
        server=SERVER,
        tag=RankTag(tp=tp),
        pid=pid_of(tp),
        start_ticks=200 + tp,
        state="S",
        parent_pid=MAIN_PID,
        rss_anon_bytes=9 * 10**9,
        rss_file_bytes=10**9,
        rss_shmem_bytes=144_150_000_000,
        vm_hwm_bytes=160 * 10**9,
    )


def mappings(tp: int) -> tuple[Mapping, ...]:
    host = plan().ranks[tp].host
    assert host is not None
    assert host.primary_bytes is not None
    assert host.indexer_allocated_bytes is not None
    return (
        mapping(tp, 0x7F0000000000, host.primary_bytes),
        mapping(tp, 0x7E0000000000, host.indexer_allocated_bytes),
    )


def mapping(tp: int, address: int, size_bytes: int) -> Mapping:
    whole_pages = -(-size_bytes // 4096) * 4096
    return Mapping(pid_of(tp), address, whole_pages, "shared_anon", 4096, inode=tp * 10 + address % 7, resident=True)


def with_points(page: MetricsPage, points: Sequence[tuple[SeriesKey, float]]) -> MetricsPage:
    """The page with these points alone."""
    return replace(page, keys=tuple(key for key, _ in points), values=tuple(value for _, value in points))


def page(at: float, stats_ranks: int = 8, *, used: int = 300_000) -> MetricsPage:
    """A metrics page on which so many ranks report gauges, and all report constants."""
    points: dict[SeriesKey, float] = {}
    for tp in range(8):
        labels = (("engine_type", "unified"), ("pp_rank", "0"), ("tp_rank", str(tp)))
        constants = {"max_total_num_tokens": 432_000, "weight_memory_usage_gb": 91.4, "kv_cache_memory_usage_gb": 24.73}
        gauges = {
            "num_running_reqs": 3,
            "num_queue_reqs": 0,
            "kv_used_tokens": used,
            "kv_evictable_tokens": 50_000,
            "kv_available_tokens": 82_000,
            "hicache_host_used_tokens": 2_000_000,
            "hicache_host_total_tokens": 2_345_216,
        }
        told = constants | gauges if tp < stats_ranks else constants
        points |= {SeriesKey(f"sglang:{name}", labels): float(value) for name, value in told.items()}
    return MetricsPage(SERVER, at, 0.05, 300_000, tuple(points), tuple(points.values()))


def without_rank(sample: Sample, tp: int) -> Sample:
    """The rank's process is gone from /proc."""
    assert sample.processes is not None
    ranks = tuple(rank for rank in sample.processes.ranks if rank.tag.tp != tp)
    return replace(
        sample,
        processes=replace(sample.processes, ranks=ranks),
        mappings={pid: maps for pid, maps in sample.mappings.items() if pid != pid_of(tp)},
    )


def with_pool(sample: Sample, tp: int, *sizes_bytes: int) -> Sample:
    """The rank maps pools of these sizes instead of those planned."""
    own = tuple(mapping(tp, 0x7F0000000000 - index * (1 << 36), size) for index, size in enumerate(sizes_bytes))
    return replace(sample, mappings=sample.mappings | {pid_of(tp): own})


def with_source(sample: Sample, name: str, state: str, code: str, detail: str = "it said so") -> Sample:
    """One source fails."""
    sources = tuple(
        replace(source, state=state, code=code, detail=detail) if source.name == name else source
        for source in sample.sources
    )
    return replace(sample, sources=sources)
