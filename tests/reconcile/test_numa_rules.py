"""Rules on placement and binding."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.reconcile.headrooms import bound_node, bound_nodes, cpu_numbers
from ranktop.sample import NumaNode, Placement, Sample
from support import changes, samples
from support.changes import event, events, found, judge, only, story

GB = 10**9


def placed(
    sample: Sample, tp: int, *pages_by_node: tuple[int, int], address: int = 0x7F0000000000, absent: int = 0
) -> Sample:
    pid = samples.pid_of(tp)
    sampled = absent + sum(pages for _, pages in pages_by_node)
    placement = Placement(pid, address, sampled, pages_by_node, absent_pages=absent)
    return replace(sample, placements=sample.placements | {pid: (placement,)})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda s: placed(s, 5, (0, 79), (1, 177)), [("warn", ("TP5",))], id="31 % on the other node"),
        pytest.param(lambda s: placed(s, 5, (0, 12), (1, 244)), [], id="4.7 %: below 5"),
        pytest.param(
            lambda s: placed(s, 5, (0, 8), (1, 120), absent=128), [("warn", ("TP5",))], id="6 % of those that are there"
        ),
        pytest.param(lambda s: placed(s, 5, absent=256), [], id="none is there"),
        pytest.param(lambda s: placed(s, 5, (0, 256), address=0x7A0000000000), [], id="a mapping that is no pool"),
        pytest.param(lambda s: replace(s, placements={}), [], id="not readable"),
        pytest.param(
            lambda s: changes.gpu(placed(s, 5, (0, 256)), 5, numa_node=None), [], id="node of the GPU unknown"
        ),
        pytest.param(lambda s: replace(placed(s, 5, (0, 256)), numa=(s.numa or ())[:1]), [], id="one node"),
    ],
)
def test_remote(change: changes.Change, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert found(judge(story(1, change)), "NUMA-REMOTE") == expected


def test_remote_says_where_and_how_sure() -> None:
    finding = only(judge(story(1, lambda s: placed(s, 5, (0, 79), (1, 177)))), "NUMA-REMOTE")
    assert (finding.evidence["far_node"], finding.evidence["gpu_node"], finding.evidence["sampled_pages"]) == (
        0,
        1,
        256,
    )
    low, high = finding.evidence["far_percent_low"], finding.evidence["far_percent_high"]
    assert low < 31 < high
    assert high - low < 12
    assert finding.message.startswith("31 % of the primary pool is on node 0")


def test_another_part_of_the_same_socket_is_near() -> None:
    """Sub-NUMA clustering: nodes 0 and 1 are one socket (12), 2 and 3 the other (32)."""

    def snc(sample: Sample) -> Sample:
        table = {0: (10, 12, 32, 32), 1: (12, 10, 32, 32), 2: (32, 32, 10, 12), 3: (32, 32, 12, 10)}
        nodes = tuple(
            NumaNode(node, total_bytes=377 * GB, free_bytes=40 * GB, distances=tuple(enumerate(row)))
            for node, row in table.items()
        )
        return replace(sample, numa=nodes)

    assert found(judge(story(1, lambda s: placed(snc(s), 0, (0, 128), (1, 128)))), "NUMA-REMOTE") == []
    assert found(judge(story(1, lambda s: placed(snc(s), 0, (0, 128), (2, 128)))), "NUMA-REMOTE") == [
        ("warn", ("TP0",))
    ]


def test_placement_that_may_not_be_read_is_unknown() -> None:
    def refused(sample: Sample) -> Sample:
        known = samples.with_source(sample, "pools", "error", "no_permission", "move_pages: Operation not permitted")
        return replace(
            known,
            placements={},
            sources=tuple(replace(s, name="placement") if s.name == "pools" else s for s in known.sources),
        )

    assert found(judge(story(1, refused)), "NUMA-NO-PERMISSION") == [("info", ())]
    assert judge(story(1, refused)).ranks[0].line("numa.local").status == "unknown"


def loose(sample: Sample, cpus: str | None) -> Sample:
    nodes = tuple(replace(node, cpus=f"{64 * node.node}-{64 * node.node + 63}") for node in sample.numa or ())
    return changes.ranks(replace(sample, numa=nodes), lambda rank: replace(rank, cpus_allowed=cpus))


def test_binding_that_was_skipped() -> None:
    finding = only(judge(story(1, lambda s: loose(s, "0-127"))), "NUMA-NO-PERMISSION")
    assert (finding.severity, finding.evidence["unbound_ranks"]) == ("info", 8)
    assert found(judge(story(1, lambda s: loose(s, "0-63"))), "NUMA-NO-PERMISSION") == []
    assert found(judge(story(1, lambda s: loose(s, "4-7"))), "NUMA-NO-PERMISSION") == [], "a cpuset inside one node"
    assert found(judge(story(1, lambda s: loose(s, None))), "NUMA-NO-PERMISSION") == []


def test_a_refused_set_mempolicy_is_told() -> None:
    refused = event("numa_failed", 0.5, rank="TP0", text="set_mempolicy: Operation not permitted")
    assert "set_mempolicy" in only(judge([events(samples.healthy(1), refused)]), "NUMA-NO-PERMISSION").message
    log_alone = replace(samples.healthy(1), numa=None)
    assert found(judge([events(log_alone, refused)]), "NUMA-NO-PERMISSION") == [("info", ())]
    one_node = replace(log_alone, numa=(samples.healthy().numa or ())[:1])
    assert found(judge([events(one_node, refused)]), "NUMA-NO-PERMISSION") == [], "nothing to bind to"


def test_the_node_that_a_rank_is_bound_to() -> None:
    nodes = (NumaNode(0, total_bytes=GB, cpus="0-3,8-11"), NumaNode(1, total_bytes=GB, cpus="4-7,12-15"))
    rank = samples.rank_process(0)
    assert bound_node(replace(rank, cpus_allowed="8-11"), nodes) == 0
    assert bound_node(replace(rank, cpus_allowed="4,12-13"), nodes) == 1
    assert bound_node(replace(rank, cpus_allowed="3-4"), nodes) is None
    assert bound_node(replace(rank, cpus_allowed="0-15", mems_allowed="1"), nodes) == 1
    assert bound_node(replace(rank, cpus_allowed="0-3"), nodes[:1]) is None, "one node binds nobody"
    assert bound_node(rank, nodes) is None
    assert bound_nodes(samples.healthy()) == frozenset()


def test_cpu_lists() -> None:
    assert cpu_numbers("0-2,7") == {0, 1, 2, 7}
    assert cpu_numbers("") == frozenset()
    assert cpu_numbers("x,3") == {3}
