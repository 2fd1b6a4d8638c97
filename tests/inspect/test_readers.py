"""Tables, XML and kinds: each reader on text of the programs that write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktop.inspect.gputext import parse_smi_xml, query_gpus, topo_nodes, with_nodes
from ranktop.inspect.hosttext import free_tables, numactl_nodes
from ranktop.inspect.kinds import kind_of
from ranktop.inspect.numamaps import is_live, parse_numa_maps
from support.cases_memory import NUMACTL
from support.node_text import free_g, meminfo, page, smi_xml

GIB = 1 << 30
HEAD = "              total        used        free      shared  buff/cache   available\n"


@pytest.mark.parametrize(
    ("text", "total", "shared", "unit"),
    [
        (free_g(2267, 961, 590, 868, 1594, 1306), 2267 * GIB, 868 * GIB, GIB),
        ("$ free -m\n" + HEAD + "Mem: 64000 1 2 512 4 5\n", 64_000 << 20, 512 << 20, 1 << 20),
        ("$ free -h\n" + HEAD + "Mem: 2.2Ti 961Gi 590Gi 868Gi 1.6Ti 1.3Ti\n", int(2.2 * (1 << 40)), 868 * GIB, None),
        (HEAD + "Mem: 2377211084 1 2 910163968 4 5\n", 2_377_211_084 << 10, 910_163_968 << 10, 1 << 10),
    ],
)
def test_free_is_read_in_its_unit(text: str, total: int, shared: int, unit: int | None) -> None:
    (host,) = free_tables(text.splitlines())
    assert (host.total_bytes, host.shmem_bytes) == (total, shared)
    assert unit is None or host.resolution_bytes == unit


@pytest.mark.parametrize("text", ["Mem: 1 2 3\n", HEAD, HEAD + "Mem: a b c d e f\n", HEAD + "Swap: 1 2 3\n"])
def test_what_is_no_free_table_gives_none(text: str) -> None:
    assert free_tables(text.splitlines()) == []


def test_numactl_gives_sizes_and_distances() -> None:
    first, second = numactl_nodes(NUMACTL.splitlines())
    assert (first.total_bytes, first.free_bytes, first.cpus) == (773_706 << 20, 501_234 << 20, "0,1,2,3")
    assert second.distances == ((0, 21), (1, 10))


def test_smi_xml_gives_memory_and_processes() -> None:
    gpus = parse_smi_xml(
        smi_xml([{"bus": "53", "total": 143771, "used": 1000, "free": 142000, "pid": 7, "process": 9}]).encode()
    )
    assert gpus is not None
    (gpu,) = gpus.gpus
    assert (gpu.total_bytes, gpu.used_bytes, gpu.pci_bus_id) == (143_771 << 20, 1000 << 20, "0000:53:00.0")
    assert gpu.processes is not None
    assert [(process.pid, process.used_bytes) for process in gpu.processes] == [(7, 9 << 20)]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "count", "states"),
    [("qx-h100.xml", 8, {"ok"}), ("qx-b200.xml", 8, {"ok"}), ("qx-gb200-lost.xml", 2, {"ok", "lost"})],
)
def test_genuine_smi_xml(name: str, count: int, states: set[str], shared: Path) -> None:
    gpus = parse_smi_xml((shared / "fixtures" / "nvidia-smi" / name).read_bytes())
    assert gpus is not None
    assert len(gpus.gpus) == count
    assert {gpu.state for gpu in gpus.gpus} == states
    assert all(gpu.total_bytes for gpu in gpus.gpus if gpu.state == "ok")


def test_query_gpus_ends_where_its_table_ends() -> None:
    text = "index, name\n0, NVIDIA H200\nnot a row\n1, NVIDIA H200\n"
    gpus = query_gpus(text.splitlines())
    assert gpus is not None
    assert [gpu.index for gpu in gpus.gpus] == [0]
    assert query_gpus(["0, NVIDIA H200"]) is None


def test_topo_fills_in_nodes_that_xml_does_not_tell() -> None:
    head = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"
    nodes = topo_nodes([head, "GPU0\t X \tNV18\t0-31\t0\tN/A", "GPU1\tNV18\t X \t32-63\t0-1\tN/A"])
    assert nodes == {0: 0, 1: None}
    gpus = with_nodes(query_gpus(["index, name", "0, H200", "1, H200"]), nodes)
    assert gpus is not None
    assert [gpu.numa_node for gpu in gpus.gpus] == [0, None]


def test_numa_maps_of_shared_pools_only() -> None:
    raw = (
        b"7f1f00000000 default file=/dev/zero\\040(deleted) dirty=65536 active=0 N0=65000 N1=536 kernelpagesize_kB=4\n"
        b"7f1f10000000 default anon=9999 dirty=9999 N0=9999 kernelpagesize_kB=4\n"
        b"7f1f20000000 default file=/usr/lib/libc.so.6 mapped=900 N1=900 kernelpagesize_kB=4\n"
    )
    (pool,) = parse_numa_maps(raw, 7)
    assert (pool.start_address, pool.sampled_pages, pool.pages_by_node) == (
        0x7F1F00000000,
        65536,
        ((0, 65000), (1, 536)),
    )


def test_numa_maps_of_a_live_proc_are_never_read(tmp_path: Path) -> None:
    assert is_live("/proc")
    assert not is_live(str(tmp_path))


@pytest.mark.parametrize(
    ("data", "kind", "detail"),
    [
        (b"", "unknown", "empty"),
        (b" \n\t", "unknown", "empty"),
        (b"\x7fELF\0\1\2\3" * 100, "unknown", "binary"),
        (b"SQLite format 3\0" + bytes(100), "unknown", "a recording: open it with `ranktop replay`"),
        (page({'sglang:num_running_reqs{tp_rank="0"}': 1}).encode(), "metrics page", ""),
        (b'sglang_num_running_reqs{tp_rank="0"} 1\n', "metrics page", ""),
        (b'DCGM_TEMP{gpu="0"} 40\nDCGM_TEMP{gpu="1"} 41\n', "unknown", "a metrics page without SGLang's families"),
        (meminfo(1, 1).encode(), "meminfo", ""),
        (b"Node 1 MemTotal:       131072 kB\n", "node meminfo", ""),
        (b"nr_free_pages 12\n", "vmstat", ""),
        (b"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "pressure", ""),
        (smi_xml([]).encode(), "nvidia-smi XML", ""),
        (b'{"tp_size": 8, "model_path": "x", "internal_states": []}', "server info", ""),
        (b'{"__REALTIME_TIMESTAMP":"1","MESSAGE":"x"}\n', "kernel journal", ""),
        (b'{"num_hidden_layers": 78}', "unknown", "a model's config.json: give it to `ranktop plan --model-config`"),
        (b"[1, 2]", "unknown", "JSON of no kind that is read"),
        (b"containers:\n- args:\n  - --tp\n  - '8'\n  command: [python, -m, sglang.launch_server]\n", "launch", ""),
        (b"[2026-11-29 09:00:00 TP0] hello\n", "text", ""),
    ],
)  # fmt: skip
def test_kinds_are_told_by_content(data: bytes, kind: str, detail: str) -> None:
    assert kind_of(data) == (kind, detail)


def test_a_log_that_was_truncated_under_its_writer_is_text() -> None:
    assert kind_of(b"\0" * 500 + b"[2026-11-29 09:00:00 TP0] hello\n")[0] == "text"
