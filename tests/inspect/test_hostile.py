"""Files of strangers: bounded, one clear line each, nothing written outside, nothing that drives a terminal."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranktop.cli.inspect import inspect_text
from ranktop.inspect import archive, reading
from ranktop.inspect.evidence import FileNote
from ranktop.inspect.report import Inspection, inspect_paths
from support.inspect_case import tar
from support.node_text import log, meminfo


def notes(found: Inspection) -> dict[str, FileNote]:
    return {note.name.rsplit("/", 1)[-1]: note for note in found.files}


def with_members(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for member, data in members:
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def test_members_that_would_leave_the_archive_are_not_read(tmp_path: Path) -> None:
    sent = tmp_path / "sent.tar"
    sent.write_bytes(
        with_members(
            (member("../meminfo"), meminfo(1, 1).encode()),
            (member("/etc/meminfo"), meminfo(1, 1).encode()),
            (member("a/../../meminfo"), meminfo(1, 1).encode()),
            (member("link", tarfile.SYMTYPE, "/etc/passwd"), b""),
            (member("hard", tarfile.LNKTYPE, "/etc/passwd"), b""),
            (member("null", tarfile.CHRTYPE), b""),
            (member("pipe", tarfile.FIFOTYPE), b""),
            (member("good/meminfo"), meminfo(1000, 500).encode()),
        )
    )
    before = sorted(tmp_path.parent.iterdir())
    found = inspect_paths([str(sent)])
    assert notes(found)["meminfo"].kind == "meminfo"
    assert notes(found)["sent.tar"].detail.startswith("7 members left out")
    assert sorted(tmp_path.parent.iterdir()) == before
    assert found.verdict.sample.host is not None
    assert found.verdict.sample.host.total_bytes == 1000 * 1024


def test_two_members_that_claim_one_place_do_no_harm(tmp_path: Path) -> None:
    sent = tmp_path / "sent.tar"
    tree = {"proc/stat": b"btime 1\n", "proc/meminfo": meminfo(1000, 500).encode(), "proc/1": b"x", "proc/1/stat": b"y"}
    sent.write_bytes(with_members(*((member(name), data) for name, data in tree.items())))
    assert inspect_paths([str(sent)]).verdict.sample.host is not None


@pytest.mark.parametrize("name", ["bomb.log.gz", "bomb.tar.gz", "bomb.log.zst", "bomb.tar.zst"])
def test_a_bomb_ends_at_its_bound(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 8 << 20)
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 64 << 20)
    zeros = b"\0" * (64 << 20)
    bomb = tmp_path / name
    plain = gzip.decompress(tar({"zeros": zeros})) if "tar" in name else zeros
    bomb.write_bytes(zstandard.compress(plain) if name.endswith(".zst") else gzip.compress(plain))
    (note,) = inspect_paths([str(bomb)]).files
    assert note.kind == "unread"
    assert note.detail == "left out from here on: it unpacks to more than 8 MiB"


def test_zstd_is_read_over_all_its_frames(tmp_path: Path) -> None:
    text = log("The server is fired up and ready to roll!").encode()
    (tmp_path / "case.tar.zst").write_bytes(zstandard.compress(gzip.decompress(tar({"meminfo": meminfo(1000, 500)}))))
    (tmp_path / "server.log.2.zst").write_bytes(b"".join(map(zstandard.compress, (text[:20], text[20:]))))
    kinds = {note.name.rsplit("/", 1)[-1]: note.kind for note in inspect_paths([str(tmp_path)]).files}
    assert kinds == {"meminfo": "meminfo", "server.log.2.zst": "server log"}


def test_a_damaged_zstd_says_so(tmp_path: Path) -> None:
    whole = zstandard.compress(os.urandom(1 << 20).hex().encode())
    (tmp_path / "cut.zst").write_bytes(whole[:9000] + b"\xff" * 400_000)
    (note,) = inspect_paths([str(tmp_path / "cut.zst")]).files
    assert note.detail.startswith("damaged from here on")


def test_many_members_end_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 10)
    sent = tmp_path / "many.tar.gz"
    sent.write_bytes(tar({f"{number}.log": log("x") for number in range(50)}))
    found = inspect_paths([str(sent)])
    assert notes(found)["many.tar.gz"].detail == "left out from here on: more than 10 members"
    assert len(found.files) == 11


def test_a_damaged_archive_says_so_and_keeps_what_came_before(tmp_path: Path) -> None:
    sent = tmp_path / "cut.tar.gz"
    whole = tar({"meminfo": meminfo(1000, 500), "noise": os.urandom(1 << 20)})
    sent.write_bytes(whole[: len(whole) // 2])
    found = inspect_paths([str(sent)])
    assert any(note.detail.startswith("damaged from here on") for note in found.files)


def test_fifty_megabytes_of_garbage_and_a_line_of_ten(tmp_path: Path) -> None:
    garbage, line = tmp_path / "garbage", tmp_path / "line.log"
    garbage.write_bytes(random.Random(7).randbytes(1 << 20) * 50)
    line.write_bytes(b"x" * (10 << 20) + b"\n" + log("The server is fired up and ready to roll!").encode())
    found = inspect_paths([str(garbage), str(line)])
    assert notes(found)["garbage"] == FileNote(str(garbage), "unknown", "binary")
    assert notes(found)["line.log"].kind == "server log"


def test_of_a_file_that_is_too_large_the_ends_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 1 << 16)
    monkeypatch.setattr(reading, "HEAD_BYTES", 1 << 15)
    path = tmp_path / "long.log"
    first, last = log("max_total_num_tokens=540928"), log("The server is fired up and ready to roll!")
    path.write_text(first + "noise\n" * 100_000 + last)
    found = inspect_paths([str(path)])
    assert "bytes in its middle were not read" in found.files[0].detail
    kinds = {event.kind for event in found.verdict.sample.events}
    assert kinds == {"capacity", "ready"}


def test_links_and_pipes_in_a_folder_are_named_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(meminfo(1, 1))
    sent = tmp_path / "sent"
    sent.mkdir()
    (sent / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(sent / "pipe")
    (sent / "loop").symlink_to(sent, target_is_directory=True)
    found = inspect_paths([str(sent)])
    assert {note.name.rsplit("/", 1)[-1]: note.detail for note in found.files} == {
        "link": "left out: a link (links are not followed)",
        "loop": "left out: a link (links are not followed)",
        "pipe": "left out: a pipe or a socket",
    }
    assert found.verdict.sample.host is None


def test_no_control_sequence_reaches_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m"
    path = tmp_path / "server.log"
    path.write_text(
        log(
            f"Prefill bootstrap failed for request rank=2 req.rid='{evil}' req.bootstrap_room=7 with "
            f"exception KVTransferError(bootstrap_room=7): {evil} timed out"
        )
    )
    (tmp_path / f"odd{chr(27)}[2Jname").write_text("nothing\n")
    text = inspect_text(inspect_paths([str(tmp_path)]))
    assert "PD-FAILURES" in text
    assert all(letter == "\n" or letter.isprintable() for letter in text)


def test_xml_with_entities_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "smi.xml"
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
        "<nvidia_smi_log><driver_version>&b;</driver_version></nvidia_smi_log>"
    )
    (note,) = inspect_paths([str(path)]).files
    assert (note.kind, note.detail[:30]) == ("unread", "nvidia-smi XML that is damaged")


def test_samples_of_another_making_are_refused_in_one_line(tmp_path: Path) -> None:
    for number, body in enumerate((b"", b'{"at_unix_seconds":"x"}\n', b"[" * 100_000 + b"\n")):
        (tmp_path / f"{number}.jsonl").write_bytes(b'{"ranktop_samples":1}\n' + body)
    (tmp_path / "9.jsonl").write_bytes(b'{"ranktop_samples":2}\n')
    told = notes(inspect_paths([str(tmp_path)]))
    assert told["0.jsonl"].detail == "0 samples"
    assert told["1.jsonl"].detail.startswith("line 2 is no sample: ")
    assert told["2.jsonl"].detail.startswith("line 2 is no sample: ")
    assert told["9.jsonl"].detail.startswith("samples of another format")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=2000))
def test_no_bytes_raise(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "any"
    path.write_bytes(data)
    inspect_text(inspect_paths([str(path)]))


_PIECES = st.sampled_from(
    [
        "Allocating 96.00 GB host memory for hierarchical KV cache.",
        "Allocating 1e999 GB host memory for hierarchical KV cache.",
        "Allocating kv hierarchical KV host pool: 99999999999999999999 tokens, 0.00 GB host memory",
        "Allocating 19.32 GB host memory for DSA indexer (layout=page_first).",
        "server_args=ServerArgs(model_path='x', tp_size=99999999, hicache_size=-1)",
        "server_args={'tp_size': 'eight', 'dp_size': None}",
        "Unsupported element_size = 0 for JIT HiCache kernel",
        "max_total_num_tokens=0",
        "python -m sglang.launch_server --tp 0 --enable-hierarchical-cache",
        "               total        used        free      shared  buff/cache   available",
        "Mem:            2267          40        1513",
        "Mem: x y z",
        'sglang:num_running_reqs{tp_rank="-1"} 1',
        'sglang:hicache_host_total_tokens{tp_rank="99999999999"} 1e308',
        "node 0 size: 99999999999999999999 MB",
        "GPU0 X CPU Affinity NUMA Affinity",
        "Out of memory: Killed process 1 (x) total-vm:1kB, shmem-rss:1kB",
        "[2026-11-29 25:99:99 TP99999] Decode batch, #token: x",
    ]
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(_PIECES, max_size=12))
def test_no_mixture_of_lines_raises(lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "pasted"
    path.write_text("\n".join(lines))
    inspect_text(inspect_paths([str(path)]))


_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
)
_FIELDS = st.sampled_from(
    [
        "tp_size",
        "dp_size",
        "pp_size",
        "attn_cp_size",
        "page_size",
        "hicache_size",
        "hicache_ratio",
        "kv_cache_dtype",
        "version",
        "host",
        "port",
        "enable_hierarchical_cache",
        "speculative_algorithm",
        "model_path",
        "served_model_name",
        "internal_states",
        "status",
        "nnodes",
        "max_total_num_tokens",
        "disaggregation_mode",
        "node_rank",
        "hicache_mem_layout",
    ]
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(odd=st.dictionaries(_FIELDS, _ODD, max_size=5))
def test_no_server_info_raises(odd: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "info.json"
    path.write_text(json.dumps({"tp_size": 2, "model_path": "x/GLM-5.2-FP8", "enable_hierarchical_cache": True} | odd))
    inspect_text(inspect_paths([str(path)]))


_PLACES = st.sampled_from(
    [
        "proc/meminfo",
        "proc/stat",
        "proc/vmstat",
        "proc/zoneinfo",
        "proc/pressure/memory",
        "proc/100/stat",
        "proc/100/cmdline",
        "proc/100/comm",
        "proc/100/status",
        "proc/101/stat",
        "proc/101/cmdline",
        "proc/101/status",
        "proc/101/maps",
        "proc/101/cgroup",
        "proc/101/limits",
        "proc/101/numa_maps",
        "proc/101/environ",
        "proc/self/mountinfo",
        "sys/devices/system/node/online",
        "sys/devices/system/node/node0/meminfo",
        "sys/devices/system/node/node0/distance",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    ]
)
_CONTENTS = st.one_of(
    st.binary(max_size=64),
    st.sampled_from(
        [
            b"sglang::scheduler_TP3\0",
            b"python\0-m\0sglang.launch_server\0--port\0000001\0",
            b"101 (x) S 100 1 1 0 0 0 0 0 0 0 1 1 0 0 0 0 1 0 5 0\n",
            b"RssShmem: 99999999999999999999 kB\n",
            b"0-fffffffffffffffff rw-s 00000000 00:01 34 /dev/zero (deleted)\n",
            b"0::/../../etc\n",
            b"0-99999999\n",
        ]
    ),
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(tree=st.dictionaries(_PLACES, _CONTENTS, max_size=12))
def test_no_tree_raises(tree: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "tree.tar.gz"
    path.write_bytes(tar({"proc/stat": b"btime 1\n", "proc/1/comm": b"x\n", "proc/meminfo": b"", **tree}))
    inspect_text(inspect_paths([str(path)]))


@pytest.mark.parametrize(
    "data",
    [
        b"args:\nsglang\n" + b"\n" * (1 << 20),
        b"sglang serve --tp 1 " + b"\\\n" * (1 << 19),
        b"sglang:a{" + b"}" * (1 << 20) + b" 1\n",
        b"\n" * (1 << 20) + b"$ free -" + b"a" * (1 << 18) + b"\n total used free\nMem: 1 2 3\n",
        b"NVRM version: " + b" 590" * (1 << 16) + b"\n",
        b"Out of memory: Killed process " * (1 << 14),
        b"oom-kill:constraint=" + b"a," * (1 << 17),
        b"[" * (1 << 20),
        b'{"a":' * (1 << 18),
    ],
    ids=lambda data: repr(data[:16]),
)
def test_no_pattern_takes_long_over_what_nobody_wrote(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "any"
    path.write_bytes(data)
    code = "import resource, sys; from ranktop.inspect.report import inspect_paths; inspect_paths(sys.argv[1:]);"
    # Seconds of CPU, far above what it takes and far below what a quadratic pattern would.
    limit = "resource.setrlimit(resource.RLIMIT_CPU, (60, 60)); "
    code = code.replace("inspect_paths(sys", limit + "inspect_paths(sys")
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 0
