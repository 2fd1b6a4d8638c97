"""Lines of the host, the node and a rank's pools."""

from __future__ import annotations

from msgspec.structs import replace

from ranktop.reconcile.headrooms import group_uses, node_headroom_bytes, working_set_bytes
from ranktop.sample import Cgroup, NumaNode, Sample, SourceState
from support import changes, samples
from support.changes import judge, story

GB = 10**9


def test_every_line_of_the_contract_is_there() -> None:
    verdict = judge(story(1))
    assert {line.line for line in verdict.node.lines} >= {
        *("host.total", "host.available", "host.cgroup", "host.reserve", "host.pools", "host.hugepages"),
        *("host.pressure", "numa.0.headroom", "numa.1.pools", "requests.running", "requests.queued"),
    }
    assert {line.line for line in verdict.ranks[0].lines} >= {
        *("hbm.total", "hbm.free", "hbm.process", "hbm.weights", "hbm.kv", "hbm.scratch", "hbm.staging", "hbm.graphs"),
        *("hbm.rest", "hbm.peak_process", "hbm.peak_gpu", "hbm.torch", "host.primary", "host.indexer"),
        *("host.bookkeeping", "host.pinned", "host.anon", "host.rss", "host.peak", "numa.local", "l1.tokens"),
    }


def test_the_four_numbers_of_a_layersplit_audit_are_four_lines() -> None:
    """Cache pool, process, peaks of process and GPU, admitted tokens: never one for another."""
    rank = judge(story(1)).ranks[0]
    names = ("hbm.kv", "hbm.process", "hbm.peak_process", "hbm.peak_gpu", "l1.tokens")
    assert all(rank.line(name).seen is not None for name in names)
    assert rank.line("hbm.peak_gpu").seen != rank.line("hbm.peak_process").seen


def test_the_working_set_leaves_out_what_can_be_given_back() -> None:
    group = Cgroup("/a", 2, current_bytes=100, active_file_bytes=10, inactive_file_bytes=20, slab_reclaimable_bytes=5)
    assert working_set_bytes(group) == 65
    assert working_set_bytes(replace(group, slab_reclaimable_bytes=None)) == 70, "v1 tells no slab"
    assert working_set_bytes(replace(group, active_file_bytes=None)) is None
    assert working_set_bytes(replace(group, current_bytes=None)) is None


def test_a_node_gives_free_file_and_slab_less_its_watermarks() -> None:
    node = NumaNode(
        0,
        free_bytes=100,
        active_file_bytes=20,
        inactive_file_bytes=30,
        slab_reclaimable_bytes=4,
        watermark_low_bytes=50,
    )
    assert node_headroom_bytes(node) == 104
    assert node_headroom_bytes(replace(node, watermark_low_bytes=500)) == 0
    assert node_headroom_bytes(replace(node, free_bytes=None)) is None


def test_the_cgroup_line_is_the_limit_that_leaves_least() -> None:
    def two_pods(sample: Sample) -> Sample:
        one = changes.cgroup(sample)
        tight = Cgroup(
            "/pod9",
            2,
            current_bytes=95 * GB,
            limit_bytes=100 * GB,
            limit_path="/pod9",
            active_file_bytes=0,
            inactive_file_bytes=0,
        )
        return replace(one, cgroups=one.cgroups | {samples.pid_of(7): tight})

    sample = two_pods(samples.healthy())
    assert [use.limit_path for use in group_uses(sample)] == ["/pod9", changes.POD]
    line = judge(story(1, two_pods)).node.line("host.cgroup")
    assert (line.seen, line.planned, line.difference, line.status) == (95 * GB, 100 * GB, -5 * GB, "over")


def test_no_limit_is_said_to_be_none() -> None:
    read = SourceState("cgroup", "ok", part="cgroups")
    line = judge(story(1, lambda s: replace(s, cgroups={}, sources=(*s.sources, read)))).node.line("host.cgroup")
    assert (line.status, line.detail) == ("unknown", "cgroup was read and has nothing of it")
    line = judge(story(1, lambda s: changes.cgroup(s, limit_bytes=None))).node.line("host.cgroup")
    assert (line.seen, line.status) == (None, "unknown")
    assert "no limit" in line.detail


def test_huge_pages_round_pools_and_are_not_over() -> None:
    def huge(sample: Sample) -> Sample:
        rounded = {
            pid: tuple(
                replace(m, kind="hugetlb", page_size_bytes=1 << 30, size_bytes=-(-m.size_bytes >> 30) << 30)
                for m in maps
            )
            for pid, maps in sample.mappings.items()
        }
        held = {pid: sum(mapping.size_bytes for mapping in maps) for pid, maps in rounded.items()}
        sample = changes.ranks(sample, lambda rank: replace(rank, rss_shmem_bytes=0, hugetlb_bytes=held[rank.pid]))
        return replace(sample, mappings=rounded)

    verdict = judge(story(1, huge))
    assert verdict.node.line("host.pools").status == "ok"
    assert {rank.line("host.primary").status for rank in verdict.ranks} == {"ok"}
    assert verdict.findings == ()


def test_a_launch_without_hicache_has_no_pools_to_find() -> None:
    sample = samples.healthy()
    assert sample.processes is not None
    (server,) = sample.processes.servers
    without = replace(sample.processes, servers=(replace(server, argv=tuple(samples.LAUNCH_WITHOUT_HICACHE.split())),))
    for processes, why in ((sample.processes, "no pool found yet"), (without, "none runs with HiCache")):
        line = judge([replace(sample, processes=processes, mappings={})]).node.line("host.pools")
        assert line.detail.endswith(why)


def test_one_page_a_layer_is_allowed() -> None:
    """Of a pool so small that half a percent is less."""
    from ranktop.plan.plan import HostPlan
    from ranktop.reconcile.lines.host import pool_lines
    from ranktop.reconcile.pools import PoolMatch
    from ranktop.reconcile.thresholds import Thresholds

    plan = samples.plan().ranks[0]
    small = HostPlan(
        row_bytes=656,
        layers=78,
        index_layers=78,
        bytes_per_token=51168,
        index_bytes_per_token=10296,
        tokens=1280,
        pages=20,
        primary_bytes=65_495_040,
        indexer_bytes=None,
        indexer_allocated_bytes=None,
        combined_bytes=None,
        allocated_bytes=None,
    )

    def status(pages_more: int) -> str:
        size = 65_495_040 + pages_more * 656 * 64 * 78
        mapping = samples.mapping(0, 0x7F0000000000, size)
        match = PoolMatch("host.primary", 65_495_040, size, mapping, False)
        (line,) = pool_lines(replace(plan, host=small), (match,), Thresholds())
        return line.status

    assert (status(1), status(2)) == ("ok", "over")
