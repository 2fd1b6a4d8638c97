"""What is read of `/proc/PID/status`, and when it is parsed again."""

from __future__ import annotations

import os
from pathlib import Path

from collectors.procfs import kib_value
from collectors.status import Status, StatusReader, parse_status

TEXT = b"""Name:\tpython
State:\tS (sleeping)
Tgid:\t42
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
    assert told == Status(1 << 20, 8 << 10, 16 << 10, None, 4 << 20, 2 << 20, None, None, "0-3", "0", (42, 7))
    assert parse_status(b"") == Status(None, None, None, None, None, None, None, None, None, None, ())


def test_a_line_that_is_no_size_among_the_sizes_leaves_the_others_readable() -> None:
    told = parse_status(TEXT.replace(b"VmSize:", b"VmOdd:\t7\nVmPin:\t3 MB\nVmSize:"))
    assert told == parse_status(TEXT)


def test_a_zombie_has_no_sizes() -> None:
    told = parse_status(b"Name:\tpython\nState:\tZ (zombie)\nTgid:\t42\nNSpid:\t42\nThreads:\t1\n")
    assert told == Status(*[None] * 10, (42,))


def test_this_process() -> None:
    raw = Path("/proc/self/status").read_bytes()
    told = StatusReader().read(raw)
    assert told.rss_anon_bytes == kib_value(raw, b"RssAnon:")
    assert told.vm_size_bytes == kib_value(raw, b"VmSize:")
    assert told.hugetlb_bytes == kib_value(raw, b"HugetlbPages:")
    assert told.namespace_pids[0] == os.getpid()


def test_only_what_says_something_new_is_parsed() -> None:
    reader = StatusReader()
    first = reader.read(TEXT)
    running = TEXT.replace(b"S (sleeping)", b"R (running)").replace(b"switches:\t5", b"switches:\t6")
    assert reader.read(running) is first
    assert reader.read(TEXT.replace(b"1024 kB", b"1028 kB")).rss_anon_bytes == 1028 << 10
    assert reader.read(TEXT) == first
