"""Deaths that a server's log tells, and pools that it logged."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from msgspec.structs import replace

from ranktop.clock import iso_utc
from ranktop.why.logs import container_logs
from support.node_text import STAMP, allocating, log, pool_log, tags
from why.node import KILLED, NOW, claim, journal_command, judged, nowhere, only_death

TRACE = (
    f"[{STAMP} TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "scheduler.py", line 1, in run\n'
    "RuntimeError: CUDA error: an illegal memory access was encountered\n\n"
)


def written(path: Path, text: str, at: float = NOW - 100) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    os.utime(path, (at, at))
    return path


def test_case_06_a_shell_saw_the_kill(tmp_path: Path) -> None:
    """4 ranks x 169.73 GB, ready, then `132625 Killed`: by whom, only the kernel's log could say."""
    text = pool_log(tags(4), allocating(169.73)) + "18:30:35 132625 Killed\n"
    path = written(tmp_path / "server.log", text)
    death = only_death(judged(replace(nowhere(tmp_path), logs=(path,))))
    assert (death.cause, death.pids) == ("killed", (132625,))
    planned = claim(death, "planned")
    assert planned.text.startswith("4 ranks x 169.73 GB = 678.92 GB of host pools as every rank logged them")
    assert planned.certainty == "proven"
    assert claim(death, "constraint").certainty == "unknown"
    assert "--kernel-log" in claim(death, "constraint").text


def test_a_kill_that_the_kernel_does_not_know_was_sent_by_a_process(tmp_path: Path) -> None:
    command = journal_command(tmp_path, {0: [(NOW - 60, "usb 1-1: new device")]})
    path = written(tmp_path / "server.log", "run.sh: line 3: 4242 Killed   python -m sglang.launch_server\n")
    where = replace(nowhere(tmp_path), logs=(path,), journal_command=command)
    found = claim(only_death(judged(where)), "constraint")
    assert (found.certainty, "another process sent SIGKILL" in found.text) == ("likely", True)


def test_a_parent_tells_how_its_scheduler_ended(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log", log("Scheduler or DataParallelController 4242 terminated with -9", tag=""))
    assert only_death(judged(replace(nowhere(tmp_path), logs=(path,)))).cause == "killed"
    path = written(tmp_path / "b.log", log("Scheduler or DataParallelController 4242 terminated with 255", tag=""))
    assert only_death(judged(replace(nowhere(tmp_path), logs=(path,)))).cause == "fault"
    path = written(tmp_path / "c.log", log("Scheduler or DataParallelController 4242 terminated with 0", tag=""))
    assert judged(replace(nowhere(tmp_path), logs=(path,))).deaths == ()


def test_an_exception_of_a_scheduler(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log", TRACE + log("SIGQUIT received. signum=None, frame=None.", tag=""))
    death = only_death(judged(replace(nowhere(tmp_path), logs=(path,))))
    assert death.cause == "fault"
    root = claim(death, "root")
    assert (root.certainty, root.text.startswith("TP3: RuntimeError: CUDA error")) == ("proven", True)


def test_what_follows_sigterm_is_no_death(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log", log("SIGTERM received. Draining requests", tag="") + TRACE)
    assert judged(replace(nowhere(tmp_path), logs=(path,))).deaths == ()


def test_a_fault_after_the_kernels_kill_is_its_effect(tmp_path: Path) -> None:
    command = journal_command(tmp_path, {0: [(NOW - 120, KILLED)]})
    stamp = iso_utc(NOW - 90).replace("T", " ")[:19]
    path = written(tmp_path / "a.log", log("SIGQUIT received. signum=None", tag="", stamp=stamp), NOW - 90)
    found = judged(replace(nowhere(tmp_path), logs=(path,), journal_command=command))
    assert only_death(found).cause == "out of memory"


def test_logs_of_earlier_containers_are_found(tmp_path: Path) -> None:
    """The container was restarted: 0.log is of the one that died."""
    folder = tmp_path / "pods" / "prod_glm-0_0a1b2c3d-0000-4000-8000-0123456789ab" / "server"
    died = "2026-09-21T16:38:20.000Z stderr F [2026-09-21 16:38:20 TP3] "
    first = TRACE.replace(f"[{STAMP} TP3] ", died).replace("\n", "\n2026-09-21T16:38:20.000Z stderr F ", 2)
    written(folder / "0.log.20260921.gz", first)
    written(folder / "1.log", "2026-09-21T16:39:00.000Z stdout F starting sglang again\n", NOW - 10)
    written(folder / "0.log.old", first, NOW - 90_000)
    assert [path.name for path in container_logs(tmp_path / "pods", NOW - 7200)] == ["1.log", "0.log.20260921.gz"]
    death = only_death(judged(replace(nowhere(tmp_path), pods_folder=str(tmp_path / "pods"))))
    assert "illegal memory access" in claim(death, "root").text


def test_logs_of_other_programs_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "pods" / "kube-system_dns_0a1b2c3d-0000-4000-8000-0123456789ab" / "dns"
    written(folder / "0.log", "2026-09-21T16:38:20.000Z stdout F line 3: 77 Killed   stress\n")
    assert container_logs(tmp_path / "pods", NOW - 7200) == []


def test_of_a_long_log_the_last_start_and_the_end_are_read(tmp_path: Path) -> None:
    """Pools are logged at the start, the death at the end, and 12 MB of traffic lie between."""
    start = log("server_args=ServerArgs(model_path='m', tp_size=2, port=30000)", tag="")
    traffic = log("Decode batch, #running-req: 3, #token: 1000, token usage: 0.01") * 130_000
    text = start + pool_log(tags(2), allocating(100.0)) + traffic + "18:30:35 132625 Killed\n"
    path = written(tmp_path / "a.log", text)
    planned = claim(only_death(judged(replace(nowhere(tmp_path), logs=(path,)))), "planned")
    assert planned.text.startswith("2 ranks x 100.00 GB = 200.00 GB")


def test_a_damaged_archive_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    bad = tmp_path / "0.log.gz"
    bad.write_bytes(gzip.compress(b"a" * 10_000)[:-20])
    good = written(tmp_path / "b.log", "18:30:35 132625 Killed\n")
    assert only_death(judged(replace(nowhere(tmp_path), logs=(bad, good)))).pids == (132625,)


def test_pools_that_only_some_ranks_logged_are_likely(tmp_path: Path) -> None:
    text = log(allocating(226.06), tag="TP2") + log(allocating(45.49, "DSA indexer (layout=page_first)"))
    path = written(tmp_path / "a.log", text + "18:30:35 132625 Killed\n")
    planned = claim(only_death(judged(replace(nowhere(tmp_path), logs=(path,)))), "planned")
    assert (planned.certainty, planned.evidence["per_rank_bytes"]) == ("likely", 271_550_000_000)
