"""What is read of `/proc/PID/status`, and when it is parsed again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from collectors.procfs import kib_value
from collectors.status import Status, StatusReader, parse_status

TEXT = b"""Name:\tpython
State:\tS (sleeping)
Tgid:\t42
PPid:\t40
NSpid:\t42\t7
VmHWM:\t    2048 kB
VmSize:\t    4096 kB
RssAnon:\t    1024 kB
RssFile:\t       8 kB
RssShmem:\t      16 kB
Cpus_allowed_list:\t0-3
Mems_allowed_list:\t0
voluntary_ctxt_switches:\t5
nonvoluntary_ctxt_switches:\t1
"""


def test_every_line_that_is_read() -> None:
    told = parse_status(TEXT)
    assert told == Status("S", 4 << 20, None, None, 2 << 20, 1 << 20, 8 << 10, 16 << 10, None, 40, "0-3", "0", (42, 7))
    assert parse_status(b"") == Status("?", None, None, None, None, None, None, None, None, None, None, None, ())


def test_a_line_that_is_no_size_among_the_sizes_leaves_the_others_readable() -> None:
    told = parse_status(TEXT.replace(b"VmSize:", b"VmOdd:\t7\nVmPin:\t3 MB\nVmSize:"))
    assert told == parse_status(TEXT)


def test_a_zombie_has_no_sizes() -> None:
    told = parse_status(b"Name:\tpython\nState:\tZ (zombie)\nTgid:\t42\nPPid:\t1\nNSpid:\t42\nThreads:\t1\n")
    assert told == Status("Z", *[None] * 8, 1, None, None, (42,))


def test_this_process() -> None:
    raw = Path("/proc/self/status").read_bytes()
    told = StatusReader().read(raw)
    assert told.rss_anon_bytes == kib_value(raw, b"RssAnon:")
    assert told.vm_size_bytes == kib_value(raw, b"VmSize:")
    assert told.rss_file_bytes == kib_value(raw, b"RssFile:")
    assert told.rss_shmem_bytes == kib_value(raw, b"RssShmem:")
    assert told.vm_hwm_bytes == kib_value(raw, b"VmHWM:")
    assert told.hugetlb_bytes == kib_value(raw, b"HugetlbPages:")
    assert told.namespace_pids[0] == os.getpid()
    assert (told.state, told.parent_pid) == ("R", os.getppid())


@pytest.mark.shared
@pytest.mark.parametrize("pool", ["shanon", "memfd", "privthp", "huge2m", "pinshanon"])
def test_a_real_status_and_one_with_a_line_more_say_the_same(shared: Path, pool: str) -> None:
    raw = (shared / "fixtures" / "self-captured" / pool / "status").read_bytes()
    told = parse_status(raw)
    assert None not in told
    assert told == parse_status(raw.replace(b"VmData:", b"VmNew:\t       1 kB\nVmData:"))
    assert (told.vm_pin_bytes, told.hugetlb_bytes) == (kib_value(raw, b"VmPin:"), kib_value(raw, b"HugetlbPages:"))
    assert (told.rss_anon_bytes, told.rss_shmem_bytes) == (kib_value(raw, b"RssAnon:"), kib_value(raw, b"RssShmem:"))


def test_only_what_says_something_new_is_parsed() -> None:
    reader = StatusReader()
    first = reader.read(TEXT)
    assert reader.read(TEXT.replace(b"switches:\t5", b"switches:\t6")) is first
    assert reader.read(TEXT.replace(b"S (sleeping)", b"R (running)")) == first._replace(state="R")
    assert reader.read(TEXT.replace(b"1024 kB", b"1028 kB")).rss_anon_bytes == 1028 << 10
    assert reader.read(TEXT) == first
