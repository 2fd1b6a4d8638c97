"""What is left of a node after a death, as files: kernel text, cgroup trees, container logs, recordings, /proc."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from ranktop.recording.writer import Writer
from ranktop.sample import Sample
from ranktop.why.death import Claim, Death
from ranktop.why.gather import Where, gather
from ranktop.why.judge import Judgement, judge

GIB = 1 << 30
NOW = 1_790_010_000.0
POD = "kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_0123456789ab.slice"
CONTAINER = f"{POD}/cri-containerd-{'ab' * 32}.scope"

CAUSE = (
    f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={'ab' * 32},mems_allowed=0-1,oom_memcg=/{POD},"
    f"task_memcg=/{CONTAINER},task=sglang::schedul,pid=4242,uid=0"
)
KILLED = (
    "Memory cgroup out of memory: Killed process 4242 (sglang::schedul) total-vm:1049023412kB, anon-rss:8000000kB, "
    "file-rss:1000000kB, shmem-rss:140771499kB, UID:0 pgtables:300000kB oom_score_adj:0"
)


def nowhere(tmp_path: Path) -> Where:
    """A node on which nothing can be read."""
    gone = str(tmp_path / "nowhere")
    return Where(proc_root=gone, sys_root=gone, pods_folder=gone, kmsg_path=gone, journal_command=gone)


def judged(where: Where, since_seconds: float = 7200.0) -> Judgement:
    return judge(gather(where, NOW - since_seconds, NOW))


def only_death(judgement: Judgement) -> Death:
    (death,) = judgement.deaths
    return death


def claim(death: Death, about: str) -> Claim:
    return next(one for one in death.claims if one.about == about)


def journal_command(folder: Path, by_boot: dict[int, Sequence[tuple[float, str]]]) -> str:
    """A program that answers as `journalctl --dmesg --output=json --boot=N` would."""
    lines = ["#!/bin/sh", 'for word in "$@"; do case "$word" in --boot=*) boot="${word#--boot=}";; esac; done']
    for boot, messages in by_boot.items():
        text = "\n".join(
            json.dumps({"__REALTIME_TIMESTAMP": str(round(at * 1e6)), "MESSAGE": message}) for at, message in messages
        )
        (folder / f"boot{boot}.json").write_text(text + "\n")
        lines.append(f'[ "$boot" = "{boot}" ] && exec cat "{folder}/boot{boot}.json"')
    lines += ['echo "No such boot ID in journal" >&2', "exit 1"]
    path = folder / "journalctl"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return str(path)


def cgroup(sys_root: Path, path: str, **files: object) -> None:
    """A v2 cgroup; `memory_max=...` is its file memory.max."""
    folder = sys_root / "fs" / "cgroup" / path
    folder.mkdir(parents=True, exist_ok=True)
    (sys_root / "fs" / "cgroup" / "cgroup.controllers").write_text("memory\n")
    (folder / "cgroup.procs").touch()
    for name, value in files.items():
        (folder / name.replace("_", ".", 1).replace("_", ".")).write_text(f"{value}\n")


def events(oom: int, oom_kill: int) -> str:
    return f"low 0\nhigh 0\nmax 10\noom {oom}\noom_kill {oom_kill}\noom_group_kill 0"


def proc(root: Path, *processes: tuple[int, int, str]) -> None:
    """A /proc with processes of (pid, parent, title)."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "stat").write_text("cpu 0 0 0 0\nbtime 1790000000\n")
    (root / "loadavg").write_text("0.1 0.1 0.1 1/100 99999\n")
    (root / "meminfo").write_text("MemTotal:       1475585937 kB\nMemAvailable:    337890625 kB\n")
    (root / "vmstat").write_text("nr_free_pages 1000\noom_kill 2\n")
    for pid, parent, title in processes:
        folder = root / str(pid)
        folder.mkdir()
        (folder / "comm").write_text(title[:15] + "\n")
        numbers = " ".join(["0"] * 14 + ["1", "0", "5000", "0", "0"] + ["0"] * 30)
        (folder / "stat").write_text(f"{pid} ({title[:15]}) S {parent} {pid} {numbers}\n")
        (folder / "status").write_text(
            f"Name:\t{title[:15]}\nState:\tS (sleeping)\nPPid:\t{parent}\nRssAnon:\t 8000000 kB\n"
            "RssShmem:\t 140771499 kB\nNSpid:\t" + str(pid) + "\n"
        )
        (folder / "cmdline").write_bytes(title.encode() + b"\0")


def recording(path: Path, samples: Iterable[Sample]) -> str:
    writer = Writer(str(path), {})
    for sample in samples:
        writer.append(sample)
    writer.close()
    return str(path)
