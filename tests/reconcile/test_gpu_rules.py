"""Rules on HBM and on the health of GPUs and of NVML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ranktop.clock import iso_utc
from ranktop.plan.plan import GIB
from ranktop.sample import Event, GpuProcess, Sample
from support import changes, samples
from support.changes import event, events, found, judge, moving, only, story, used, with_graphs

GB = 10**9


# HBM-OVER


def growing(shape: Callable[[int], int], seconds: int = 700) -> list[Sample]:
    return moving(seconds, lambda s, at: used(with_graphs(s), 2, shape(at)), step=20)


def test_what_rises_beside_weights_pool_and_graphs() -> None:
    finding = only(judge(growing(lambda at: at * 4 << 20)), "HBM-OVER")
    assert (finding.severity, finding.ranks) == ("breach", ("TP2",))
    assert finding.evidence["rise_bytes_per_hour"] == pytest.approx(3600 * 4 << 20, rel=0.01)
    assert "full in" in finding.message


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda at: at << 20, id="0.7 GiB: within tolerance"),
        pytest.param(lambda at: 3 * GIB if at > 300 else 0, id="one step that has ended"),
        pytest.param(lambda at: 3 * GIB * (at // 20 % 2), id="up and down"),
    ],
)
def test_what_does_not_keep_rising_is_not_over(shape: Callable[[int], int]) -> None:
    assert found(judge(growing(shape)), "HBM-OVER") == []


def test_without_the_three_parts_nothing_is_said() -> None:
    silent = moving(700, lambda s, at: used(replace(s, metrics={}), 2, at * 4 << 20), step=20)
    assert found(judge(silent), "HBM-OVER") == []


def test_a_failed_allocation_is_a_breach_at_once() -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    failed = event("traceback", 0.5, rank="TP0", text=text, error_type="torch.OutOfMemoryError")
    finding = only(judge([events(samples.healthy(1), failed)]), "HBM-OVER")
    assert (finding.severity, finding.ranks, finding.evidence["free_bytes"]) == ("breach", ("TP0",), 12 * GB)
    other = event("traceback", 0.5, rank="TP0", text="ValueError: no", error_type="ValueError")
    assert found(judge([events(samples.healthy(1), other)]), "HBM-OVER") == []


def test_little_free_memory_alone_is_normal() -> None:
    full = story(40, lambda s: changes.gpu(with_graphs(s), 3, free_bytes=200 << 20), step=20)
    assert judge(full).findings == ()


# HBM-SKEW


def test_a_rank_that_moves_away_from_its_peers() -> None:
    moved = moving(40, lambda s, at: used(s, 6, 2 * GIB if at >= 20 else 0), step=10)
    finding = only(judge(moved), "HBM-SKEW")
    assert (finding.severity, finding.ranks) == ("warn", ("TP6",))
    assert finding.evidence["offset_bytes"] == 2 * GIB
    always = story(40, lambda s: used(s, 6, 3 * GIB), step=10)
    assert found(judge(always), "HBM-SKEW") == [], "its own offset since it was steady"
    little = moving(40, lambda s, at: used(s, 6, 3 * GIB // 2 if at >= 20 else 0), step=10)
    assert found(judge(little), "HBM-SKEW") == []


def test_ranks_that_grow_together_are_not_skewed() -> None:
    def all_grow(sample: Sample, at: int) -> Sample:
        for tp in range(8):
            sample = used(sample, tp, 4 * GIB if at >= 20 else 0)
        return sample

    assert found(judge(moving(40, all_grow, step=10)), "HBM-SKEW") == []


def test_growth_before_steady_work_is_no_skew() -> None:
    """Ready is seen to come, then the first prefill makes one rank grow."""
    first = changes.loading(samples.healthy(0))
    rest = moving(200, lambda s, at: used(s, 0, 2 * GIB if at >= 50 else 0), step=10)
    assert found(judge([first, *rest[1:]]), "HBM-SKEW") == []


# HBM-ORPHAN


def orphaned(sample: Sample, state: str = "S") -> Sample:
    return changes.ranks(sample, lambda rank: replace(rank, orphan=True, parent_pid=1, state=state), 1)


def test_a_scheduler_without_its_server_holds_hbm() -> None:
    finding = only(judge(story(12, orphaned)), "HBM-ORPHAN")
    assert (finding.severity, finding.ranks) == ("breach", ("TP1",))
    assert (finding.evidence["hbm_bytes"], finding.evidence["start_ticks"]) == (137 * GB, 201)
    assert found(judge(story(3, orphaned)), "HBM-ORPHAN") == [], "it may be ending"
    assert found(judge(story(12, lambda s: orphaned(s, "D"))), "HBM-ORPHAN") == [], "it is ending"
    assert found(judge(story(12, lambda s: replace(orphaned(s), gpus=None))), "HBM-ORPHAN") == []


def test_a_stranger_on_a_ranks_gpu() -> None:
    def shared(sample: Sample, size: int) -> Sample:
        return changes.gpu(sample, 3, processes=(GpuProcess(samples.pid_of(3), 100 * GB), GpuProcess(99, size)))

    finding = only(judge(story(1, lambda s: shared(s, 20 * GB))), "HBM-ORPHAN")
    assert (finding.severity, finding.evidence["pids"], finding.evidence["gpus"]) == ("info", [99], [3])
    assert found(judge(story(1, lambda s: shared(s, 500 << 20))), "HBM-ORPHAN") == [], "a monitor's context"


def test_host_pids_in_a_container_are_the_ranks_own() -> None:
    def foreign(sample: Sample) -> Sample:
        for tp in range(8):
            sample = changes.gpu(sample, tp, processes=(GpuProcess(90_000 + tp, 137 * GB),))
        return sample

    assert judge(story(2, foreign)).findings == ()


# GPU-LOST, GPU-ECC, NVML-BROKEN


@pytest.mark.parametrize(
    ("fields", "code", "expected"),
    [
        pytest.param({"state": "lost"}, "GPU-LOST", [("critical", ("TP4",))], id="lost"),
        pytest.param({"state": "reset_required"}, "GPU-LOST", [("critical", ("TP4",))], id="needs a reset"),
        pytest.param({"state": "hanging"}, "GPU-LOST", [], id="hangs: that is NVML-BROKEN"),
        pytest.param({"state": "hanging", "detail": "no answer"}, "NVML-BROKEN", [("warn", ())], id="hangs"),
        pytest.param({"state": "lost"}, "NVML-BROKEN", [], id="lost is told once"),
        pytest.param({"remap_pending": True}, "GPU-ECC", [("warn", ("TP4",))], id="remap pending"),
        pytest.param({"remap_failed": True}, "GPU-ECC", [("critical", ("TP4",))], id="remap failed"),
        pytest.param({"remap_pending": False, "ecc_uncorrected_count": 0}, "GPU-ECC", [], id="well"),
        pytest.param({}, "GPU-ECC", [], id="not told"),
    ],
)
def test_one_gpu(fields: dict[str, object], code: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert found(judge(story(1, lambda s: changes.gpu(s, 4, **fields))), code) == expected


def test_a_mismatch_says_what_is_blind() -> None:
    def broken(sample: Sample) -> Sample:
        detail = "NVML: kernel driver 590.48.01 and library 595.71.05 differ"
        return replace(samples.with_source(sample, "nvml", "error", "version_mismatch", detail), gpus=None)

    finding = only(judge(story(1, broken)), "NVML-BROKEN")
    assert finding.severity == "warn"
    assert "590.48.01" in finding.message
    assert "Not seen now: HBM" in finding.message
    absent = story(1, lambda s: replace(samples.with_source(s, "nvml", "no_data", "absent"), gpus=None))
    assert found(judge(absent), "NVML-BROKEN") == [], "no driver here is ordinary"


def test_a_library_that_does_not_fit_the_driver_is_known_from_the_kernel() -> None:
    told = event("driver_mismatch", 0.5, library_version="580.95.05", driver_version="580.105.08")
    blind = [replace(events(samples.healthy(1), told), gpus=None)]
    finding = only(judge(blind), "NVML-BROKEN")
    assert finding.message.startswith("NVIDIA library 580.95.05 does not fit the loaded driver 580.105.08")
    assert found(judge([events(samples.healthy(1), told)]), "NVML-BROKEN") == [], "NVML answers all the same"
    assert found(judge([replace(samples.healthy(1), gpus=None)]), "NVML-BROKEN") == []


# GPU-XID


def xid(number: int, at: float, bus: str, **fields: Any) -> Event:
    return event("xid", at, text=f"Xid {number}", xid=number, pci_bus_id=bus, **fields)


def buses(sample: Sample) -> Sample:
    for index in range(8):
        sample = changes.gpu(sample, index, pci_bus_id=f"0000:{index:02x}:00.0")
    return sample


def test_a_cascade_is_one_root_with_its_victims() -> None:
    cascade = [
        xid(149, 1.0, "0000:02:00.0"),
        xid(45, 1.2, "0000:03:00.0", pid=samples.pid_of(3), caused_by_xid=149),
        xid(45, 1.3, "0000:04:00.0", pid=samples.pid_of(4)),
    ]
    finding = only(judge([buses(samples.healthy(0)), events(buses(samples.healthy(2)), *cascade)]), "GPU-XID")
    assert (finding.severity, finding.ranks, finding.evidence["xid"]) == ("critical", ("TP2",), 149)
    assert (finding.evidence["victim_xids"], finding.evidence["victim_ranks"]) == ([45, 45], ["TP3", "TP4"])
    assert finding.since == iso_utc(samples.START + 1.0), "the kernel's time, not that of the look"


def test_a_root_that_only_its_victims_name() -> None:
    """A log that begins after the root: each victim says `previous Xid 149`."""
    victims = [xid(45, 1.0 + tp / 10, f"0000:{tp:02x}:00.0", caused_by_xid=149) for tp in range(4)]
    finding = only(judge([events(buses(samples.healthy(2)), *victims)]), "GPU-XID")
    assert (finding.severity, finding.ranks, finding.evidence["xid"]) == ("critical", (), 149)
    assert finding.evidence["victim_ranks"] == ["TP0", "TP1", "TP2", "TP3"]


def test_an_application_fault_warns() -> None:
    assert found(judge([events(buses(samples.healthy(2)), xid(31, 1.0, "0000:05:00.0"))]), "GPU-XID") == [
        ("warn", ("TP5",))
    ]
    elsewhere = events(samples.healthy(2), xid(79, 1.0, "0000:0f:00.0"))
    assert found(judge([elsewhere]), "GPU-XID") == [("critical", ())], "a GPU that no rank is known to be on"


def test_nvml_and_the_kernel_tell_one_fault() -> None:
    kernel = xid(94, 1.0, "0000:05:00.0", pid=samples.pid_of(5))
    nvml = replace(xid(94, 1.4, "0000:05:00.0"), source="measured")
    assert only(judge([events(buses(samples.healthy(2)), kernel, nvml)]), "GPU-XID").evidence["times"] == 1
