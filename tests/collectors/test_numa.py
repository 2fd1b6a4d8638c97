from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import numa_topology
from collectors.numa import NumaNodesCollector, parse_node, parse_watermarks
from collectors.numa_topology import Topology, disagreement, library_distances, parse_id_list, read_topology
from ranktop.sample import HugePages, NoData, SourceError

HWLOC = Path("fixtures") / "hwloc"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("0\n", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,8,250-255\n", (0, 8, 250, 251, 252, 253, 254, 255)),
        ("", ()),
        ("N/A", ()),
        ("0-", ()),
        ("1-x", ()),
        ("-1", ()),
    ],
)
def test_id_lists(text: str, ids: tuple[int, ...]) -> None:
    assert parse_id_list(text) == ids


def unpack(archive: Path, into: Path) -> str:
    with tarfile.open(archive) as tar:
        # Python 3.11.4 brought the filter.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(into, [member for member in tar if "/devices/system/node/" in member.name])
    (tree,) = into.iterdir()
    return str(tree / "sys")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("tree", "nodes", "distances"),
    [
        ("nvidiagpunumanodes", (0, 8, 250, 251, 252, 253, 254, 255), {(0, 8): 40, (8, 255): 80}),
        ("64amd64-4s2n4ca2co", tuple(range(8)), {(0, 3): 22, (0, 1): 16}),
        ("32amd64-4s2n4c-cgroup2", tuple(range(8)), {}),
        ("40intel64-2g2n4c+pcilocality", (0, 1, 2, 3), {(0, 1): 20}),
        ("8em64t-2s2ca2c-buggynuma", tuple(range(8)), {(0, 7): 10}),
        ("48amd64-4pa2n6c-sparse", (0, 1, 2, 33, 34, 45, 72, 73), {(2, 33): 16, (73, 0): 22}),
        ("memorysidecaches", (0, 1, 2, 3), {(0, 2): 11, (0, 1): 21}),
        ("96em64t-4no4pa3ca2co", (0, 1, 2, 3), {(0, 1): 26}),
        ("nvidia-dgx-gb10", (0,), {}),
        ("16em64t-4s2c2t-offlines", (0,), {}),
        ("offline-cpu0-node0", (1,), {(1, 0): 21}),
    ],
)
def test_real_machines(
    shared: Path, tmp_path: Path, tree: str, nodes: tuple[int, ...], distances: dict[tuple[int, int], int]
) -> None:
    sys_root = unpack(shared / HWLOC / f"{tree}.tar.bz2", tmp_path)
    topology = read_topology(sys_root)
    assert topology.nodes == nodes
    assert topology.distances | distances == topology.distances
    assert all(topology.distances[node, node] == 10 for node in topology.nodes)
    read = NumaNodesCollector(sys_root, tmp_path).read(None, 0.0)
    assert tuple(node.node for node in read) == topology.nodes
    assert all(node.total_bytes is not None for node in read)
    assert all(len(node.distances) == len(topology.nodes) for node in read)


@pytest.mark.shared
def test_memory_only_nodes_have_no_cpus(shared: Path, tmp_path: Path) -> None:
    topology = read_topology(unpack(shared / HWLOC / "nvidiagpunumanodes.tar.bz2", tmp_path))
    assert topology.cpus[8] == "88-175"
    assert topology.cpus[250] == ""


@pytest.mark.shared
def test_own_capture(shared: Path) -> None:
    folder = shared / "fixtures" / "self-captured" / "host" / "node0"
    node = parse_node(
        0, (folder / "meminfo").read_bytes(), (folder / "vmstat").read_bytes(), (folder / "numastat").read_bytes()
    )
    assert node.total_bytes == 24683656 * 1024
    assert node.free_bytes == 5938464 * 1024
    assert node.foll_pin_acquired_pages is not None
    assert (node.numa_miss_pages, node.numa_foreign_pages) == (0, 0)


def test_this_machine() -> None:
    nodes = NumaNodesCollector().read(None, 0.0)
    assert nodes[0].free_bytes
    assert nodes[0].watermark_low_bytes
    assert nodes[0].distances[0] == (0, 10)


def write_node(root: Path, node: int, files: dict[str, str]) -> Path:
    folder = root / "devices" / "system" / "node" / f"node{node}"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_two_nodes_without_the_online_file(tmp_path: Path) -> None:
    huge = "hugepages/hugepages-2048kB"
    write_node(
        tmp_path,
        0,
        {
            "distance": "10 21\n",
            "cpulist": "0,2,4\n",
            "meminfo": "Node 0 MemTotal: 100 kB\nNode 0 Shmem: 9 kB\n",
            f"{huge}/nr_hugepages": "7\n",
            f"{huge}/free_hugepages": "2\n",
        },
    )
    write_node(tmp_path, 3, {"distance": "21 10\n", "cpulist": "\n", "meminfo": "Node 3 MemTotal: 50 kB\n"})
    first, second = NumaNodesCollector(tmp_path, tmp_path).read(None, 0.0)
    assert (first.node, first.distances, first.cpus, first.shmem_bytes) == (0, ((0, 10), (3, 21)), "0,2,4", 9216)
    assert first.hugepages == (HugePages(2 << 20, 7, 2, None),)
    assert (second.node, second.cpus, second.shmem_bytes, second.numa_miss_pages) == (3, "", None, None)
    assert second.watermark_low_bytes is None


def test_a_distance_file_that_does_not_fit_is_not_used(tmp_path: Path) -> None:
    write_node(tmp_path, 0, {"distance": "10 20 30\n"})
    write_node(tmp_path, 1, {"distance": "10 x\n"})
    assert read_topology(str(tmp_path)).distances == {}


def test_a_kernel_without_numa(tmp_path: Path) -> None:
    with pytest.raises(NoData, match="without NUMA"):
        NumaNodesCollector(tmp_path, tmp_path).read(None, 0.0)


def test_a_node_that_goes_offline_is_left_out_from_the_next_reading_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_node(tmp_path, 0, {"distance": "10 20\n", "meminfo": "Node 0 MemTotal: 1 kB\n"})
    gone = write_node(tmp_path, 1, {"distance": "20 10\n", "meminfo": "Node 1 MemTotal: 1 kB\n"})
    collector = NumaNodesCollector(tmp_path, tmp_path)
    assert len(collector.read(None, 0.0)) == 2

    def fails(name: str) -> bytes:
        raise OSError(5, "Input/output error", "meminfo")

    monkeypatch.setattr(collector._files[1], "read", fails)
    with pytest.raises(SourceError, match="Input/output"):
        collector.read(None, 1.0)
    (gone / "meminfo").unlink()
    (gone / "distance").unlink()
    gone.rmdir()
    assert [node.node for node in collector.read(None, 2.0)] == [0]


def test_watermarks_are_sums_over_zones() -> None:
    zoneinfo = (
        b"Node 0, zone      DMA\n  pages free     2816\n        min      7\n        low      8\n"
        b"Node 0, zone   Normal\n        low      100\n  nr_free_pages 5\nNode 1, zone   Normal\n        low      50\n"
    )
    assert parse_watermarks(zoneinfo) == {0: 108, 1: 50}


def test_libraries_that_disagree_are_reported() -> None:
    topology = Topology((0, 1), {}, {(0, 0): 10, (0, 1): 21})
    assert disagreement(topology, "libnuma", {(0, 0): 10, (0, 1): 21}) is None
    assert disagreement(topology, "libnuma", {(0, 1): 20}) == "node 0 to 1: sysfs says 21, libnuma says 20"


def test_libnuma_agrees_with_sysfs_here() -> None:
    topology = read_topology("/sys")
    told = library_distances(topology.nodes)
    if told is None:
        pytest.skip("neither numa nor libnuma is installed here")
    assert disagreement(topology, *told) is None


def test_the_wrong_numa_package_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class PyLibnuma:
        """py-libnuma 1.2: the same name, another interface."""

    monkeypatch.setitem(sys.modules, "numa", PyLibnuma())
    assert numa_topology._numa_package() is None


REFUSED = """
import ctypes, sys
from collectors import numa_topology
class Libc:
    def syscall(self, *arguments):
        ctypes.set_errno(1)
        return -1
numa_topology.ctypes.CDLL = lambda name, **options: Libc() if name is None else sys.exit("libnuma was loaded")
assert numa_topology.library_distances((0,)) is None
"""


def test_where_get_mempolicy_is_refused_libnuma_is_not_loaded_and_nothing_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REFUSED], capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=20
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@given(st.binary(max_size=200))
def test_parsers_never_raise(raw: bytes) -> None:
    parse_node(0, raw, raw, raw)
    parse_watermarks(raw)
    parse_id_list(raw.decode("latin-1"))
