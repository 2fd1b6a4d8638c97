from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.cgroup import CgroupCollector, limit_bytes, smallest
from collectors.cgroup_paths import (
    Membership,
    Mount,
    container_id,
    parse_membership,
    parse_mounts,
    pod_uid,
    visible_chain,
)
from ranktop.sample import Cgroup, NoData, Processes, RankProcess, RankTag

UID = "0f5d2c9e-1b2a-4c3d-8e4f-5a6b7c8d9e0f"
CONTAINER = "a" * 63 + "b"
SYSTEMD = (
    f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
    f"/cri-containerd-{CONTAINER}.scope"
)
HYBRID = b"9:name=systemd:/\n5:memory:/job/x\n2:cpuacct:/\n0::/\n"


def ranks(*pids: int) -> Processes:
    return Processes(ranks=tuple(RankProcess("s", RankTag(), pid, 1, "S") for pid in pids))


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("raw", "membership"),
    [
        (HYBRID, Membership(1, "/job/x")),
        (b"0::/system.slice/a.service\n", Membership(2, "/system.slice/a.service")),
        (b"4:cpu,memory:/m\n0::/u\n", Membership(1, "/m")),
        (b"4:cpu:/m\n", None),
        (b"0::/with:colon\n", Membership(2, "/with:colon")),
        (b"", None),
    ],
)
def test_which_hierarchy_accounts_memory(raw: bytes, membership: Membership | None) -> None:
    assert parse_membership(raw) == membership


@pytest.mark.parametrize(
    ("path", "uid", "container"),
    [
        (SYSTEMD, UID, CONTAINER),
        (f"/kubepods/besteffort/pod{UID}/{CONTAINER}", UID, CONTAINER),
        (f"/docker/{CONTAINER}", None, CONTAINER),
        (f"/machine.slice/libpod-{CONTAINER}.scope/container", None, CONTAINER),
        (f"/kubepods/pod{'c' * 32}/{CONTAINER}", "c" * 32, CONTAINER),
        ("/system.slice/podman.service", None, None),
        ("/", None, None),
    ],
)
def test_pod_and_container_in_a_path(path: str, uid: str | None, container: str | None) -> None:
    assert (pod_uid(path), container_id(path)) == (uid, container)


def test_v2_with_a_limit_on_an_ancestor(tmp_path: Path) -> None:
    base = tmp_path / "sys" / "fs" / "cgroup"
    own = base / SYSTEMD.lstrip("/")
    slices = {
        own: "max\n",
        own.parent: "429496729600\n",
        own.parent.parent: "max\n",
        own.parent.parent.parent: "900000000000\n",
    }
    for folder, limit in slices.items():
        write(folder, {"memory.max": limit, "cgroup.procs": ""})
    write(base, {"cgroup.procs": ""})
    write(
        own,
        {
            "memory.current": "312456789012\n",
            "memory.peak": "400000000000\n",
            "memory.stat": "anon 5\nfile 9\nshmem 7\ninactive_file 3\nactive_file 2\nslab_reclaimable 1\n",
            "memory.events": "low 0\nhigh 4\nmax 11\noom 2\noom_kill 1\noom_group_kill 0\n",
            "memory.oom.group": "1\n",
            "memory.pressure": "some avg10=6.00 avg60=1.00 total=9\nfull avg10=0.50 avg60=0 total=1\n",
        },
    )
    write(tmp_path / "proc", {"7/cgroup": f"0::{SYSTEMD}\n", "8/cgroup": f"0::{SYSTEMD}\n"})
    (tmp_path / "pods" / f"prod_glm-decode-0_{UID}").mkdir(parents=True)
    collector = CgroupCollector(tmp_path / "proc", tmp_path / "sys", pods_folder=tmp_path / "pods")
    found = collector.read(ranks(7, 8), 0.0)
    assert found[7] is found[8]
    cgroup = found[7]
    assert cgroup.current_bytes == 312456789012
    assert (cgroup.limit_bytes, cgroup.limit_path) == (429496729600, os.path.dirname(SYSTEMD))
    assert (cgroup.peak_bytes, cgroup.shmem_bytes, cgroup.anon_bytes) == (400000000000, 7, 5)
    assert (cgroup.inactive_file_bytes, cgroup.active_file_bytes, cgroup.slab_reclaimable_bytes) == (3, 2, 1)
    assert (cgroup.oom_count, cgroup.oom_kill_count, cgroup.max_count, cgroup.high_count) == (2, 1, 11, 4)
    assert cgroup.oom_group is True
    assert cgroup.pressure is not None
    assert cgroup.pressure.some_avg10_percent == 6.0
    assert (cgroup.pod_uid, cgroup.container_id) == (UID, CONTAINER)
    assert (cgroup.pod_namespace, cgroup.pod_name) == ("prod", "glm-decode-0")


def test_v1_knows_limits_that_it_does_not_show(tmp_path: Path) -> None:
    own = tmp_path / "sys" / "fs" / "cgroup" / "memory" / "job" / "x"
    unlimited = "9223372036854771712\n"
    write(
        own,
        {
            "memory.limit_in_bytes": unlimited,
            "memory.usage_in_bytes": "1000\n",
            "memory.max_usage_in_bytes": "2000\n",
            "memory.failcnt": "5\n",
            "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
            # Without `total_` it is the cgroup's own, without its children's.
            "memory.stat": "rss 1\nshmem 2\ninactive_file 3\nactive_file 4\nhierarchical_memory_limit 8000\n"
            "total_rss 10\ntotal_shmem 20\ntotal_inactive_file 30\ntotal_active_file 40\n",
        },
    )
    write(own.parent, {"memory.limit_in_bytes": "9000\n"})
    write(own.parent.parent, {"memory.limit_in_bytes": unlimited})
    write(tmp_path / "proc", {"7/cgroup": HYBRID.decode()})
    cgroup = CgroupCollector(tmp_path / "proc", tmp_path / "sys").read(ranks(7), 0.0)[7]
    assert (cgroup.version, cgroup.current_bytes, cgroup.peak_bytes) == (1, 1000, 2000)
    assert (cgroup.limit_bytes, cgroup.limit_path) == (8000, "(an ancestor)")
    assert (cgroup.anon_bytes, cgroup.shmem_bytes) == (10, 20)
    assert (cgroup.inactive_file_bytes, cgroup.active_file_bytes) == (30, 40)
    assert (cgroup.oom_kill_count, cgroup.max_count, cgroup.oom_count, cgroup.oom_group) == (3, 5, None, None)
    write(own, {"memory.stat": "total_rss 10\n"})
    again = CgroupCollector(tmp_path / "proc", tmp_path / "sys").read(ranks(7), 0.0)[7]
    assert (again.limit_bytes, again.limit_path) == (9000, "/job")


def test_the_root_cgroup_has_no_numbers_and_no_zeros(tmp_path: Path) -> None:
    write(tmp_path / "sys" / "fs" / "cgroup", {"cgroup.procs": "", "memory.stat": "anon 5\n"})
    write(tmp_path / "proc", {"7/cgroup": "0::/\n"})
    cgroup = CgroupCollector(tmp_path / "proc", tmp_path / "sys").read(ranks(7), 0.0)[7]
    assert cgroup == Cgroup(path="/", version=2, anon_bytes=5)


def test_a_container_that_sees_the_hosts_path(tmp_path: Path) -> None:
    folder = tmp_path / "fs" / "cgroup" / "memory"
    write(folder, {"memory.limit_in_bytes": "5\n"})
    mounts = [Mount(1, f"/docker/{CONTAINER}", "/sys/fs/cgroup/memory")]
    membership = Membership(1, f"/docker/{CONTAINER}")
    assert visible_chain(membership, mounts, str(tmp_path)) == [(str(folder), f"/docker/{CONTAINER}")]
    assert visible_chain(Membership(1, "/docker/other"), mounts, str(tmp_path)) == []
    assert visible_chain(Membership(1, "/../other"), [Mount(1, "/", "/sys/fs/cgroup/memory")], str(tmp_path)) == []


def test_mounts() -> None:
    mountinfo = (
        b"30 20 0:26 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
        b"31 20 0:27 /docker/x /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n"
        b"32 20 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\nshort line\n"
    )
    assert parse_mounts(mountinfo) == [
        Mount(2, "/", "/sys/fs/cgroup/unified"),
        Mount(1, "/docker/x", "/sys/fs/cgroup/memory"),
    ]


def test_nothing_visible_is_no_data(tmp_path: Path) -> None:
    write(tmp_path / "proc", {"7/cgroup": "0::/../../elsewhere\n"})
    with pytest.raises(NoData, match="cgroup"):
        CgroupCollector(tmp_path / "proc", tmp_path / "sys").read(ranks(7), 0.0)
    assert CgroupCollector(tmp_path / "proc", tmp_path / "sys").read(None, 0.0) == {}


def test_this_process() -> None:
    try:
        found = CgroupCollector().read(ranks(os.getpid()), 0.0)
    except NoData as reason:
        pytest.skip(str(reason))
    assert found[os.getpid()].path.startswith("/")


def test_limits() -> None:
    assert limit_bytes(b"max\n") is None
    assert limit_bytes(b"9223372036854771712\n") is None
    assert limit_bytes(b"4096\n") == 4096
    assert smallest([("/a/b", 5), ("/a", 5), ("/", None)]) == ("/a/b", 5)
    assert smallest([("/", None)]) is None


@given(st.binary(max_size=200))
def test_parsers_never_raise(raw: bytes) -> None:
    parse_membership(raw)
    parse_mounts(raw)
    text = raw.decode("latin-1")
    pod_uid(text)
    container_id(text)
