from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.hostmem import HostMemCollector, parse_host
from collectors.pressure import parse_pressure
from ranktop.sample import HugePages, Pressure, SourceError


def test_this_host() -> None:
    collector = HostMemCollector()
    collector.read(None, 0.0)
    host = collector.read(None, 0.0)
    assert host.total_bytes is not None
    assert host.available_bytes is not None
    assert 0 < host.available_bytes <= host.total_bytes
    assert host.oom_kill_count is not None
    assert host.source == "measured"


@pytest.mark.shared
def test_own_capture(shared: Path, tmp_path: Path) -> None:
    folder = shared / "fixtures" / "self-captured" / "host"
    sizes = tmp_path / "kernel" / "mm" / "hugepages"
    for name, counts in (("hugepages-2048kB", (512, 100, 3)), ("hugepages-1048576kB", (0, 0, 0))):
        (sizes / name).mkdir(parents=True)
        for file, number in zip(("nr_hugepages", "free_hugepages", "resv_hugepages"), counts, strict=True):
            (sizes / name / file).write_text(f"{number}\n")
    host = HostMemCollector(folder, tmp_path).read(None, 0.0)
    assert host.total_bytes == 24683656 * 1024
    assert host.hugepages == (HugePages(2 << 20, 512, 100, 3), HugePages(1 << 30, 0, 0, 0))
    assert host.pressure is not None
    assert host.alloc_stall_count is not None
    assert host.foll_pin_acquired_pages is not None


@pytest.mark.shared
def test_an_old_kernel_has_less(shared: Path, tmp_path: Path) -> None:
    host = HostMemCollector(shared / "fixtures" / "node_exporter" / "proc", tmp_path).read(None, 0.0)
    assert host.total_bytes == 3831959552
    assert host.alloc_stall_count == 83165
    assert host.pressure is not None
    assert host.pressure.some_avg10_percent == 0.0
    assert host.pressure.full_total_microseconds == 0
    assert (host.available_bytes, host.oom_kill_count, host.foll_pin_acquired_pages) == (None, 0, None)
    assert host.hugepages == ()


def test_an_unknown_unit_is_no_number() -> None:
    host = parse_host(b"MemTotal:  10 kB\nMemFree:  3 MB\nShmem: 7\nAnonPages: -1 kB\n", b"oom_kill many\n")
    assert host.total_bytes == 10240
    assert (host.free_bytes, host.shmem_bytes, host.anon_bytes, host.oom_kill_count) == (None, None, None, None)


def test_no_meminfo_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="meminfo"):
        HostMemCollector(tmp_path, tmp_path).read(None, 0.0)


def test_pressure_without_full() -> None:
    cpu = b"some avg10=1.50 avg60=0.20 avg300=0.00 total=12\n"
    assert parse_pressure(cpu) == Pressure(1.5, 0.2, None, None, 12, None)
    assert parse_pressure(b"some avg10=nan avg60= total=x\n") == Pressure()
    assert parse_pressure(b"") is None


@given(st.binary(max_size=300))
def test_parsers_never_raise(raw: bytes) -> None:
    parse_pressure(raw)
    parse_host(raw, raw, None, (), raw)
