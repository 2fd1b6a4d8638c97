"""What docs/permissions.md says, tried: an ordinary user, that user with one capability, a container and its root."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ranktop.demo.launcher import DemoError, DemoNode
from support.command import RANKTOP

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("permissions"),
    pytest.mark.tools("setpriv", "unshare"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become others"),
]

NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
WITH_PTRACE = f"{NOBODY} --inh-caps +sys_ptrace --ambient-caps +sys_ptrace"
_DROPPED = "-sys_ptrace,-perfmon,-sys_admin"
"""Newer kernels show maps to CAP_PERFMON too, which CAP_SYS_ADMIN includes (capabilities(7))."""
CONTAINERS_ROOT = f"setpriv --bounding-set {_DROPPED} --inh-caps {_DROPPED}"
IN_A_CONTAINER = "unshare --pid --fork --kill-child --mount-proc"


def _opened() -> str:
    """Shell that lets others reach an interpreter in somebody's home, in a mount namespace that nobody else sees."""
    base = Path(sys.base_prefix)
    closed = next((folder for folder in reversed(base.parents) if not folder.stat().st_mode & 0o001), None)
    if closed is None:
        return ""
    return (
        f"mount --bind {base} /mnt && mount -t tmpfs -o mode=755 none {closed} && "
        f"mkdir -p {base} && mount --bind /mnt {base} && "
    )


def _run(folder: Path, as_whom: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = f"{_opened()} exec {as_whom} {shlex.join([sys.executable, '-P', '-m', 'ranktop.cli', *arguments])}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
        cwd=folder,
        check=False,
    )
    if done.returncode in (126, 127) or "No module named" in done.stderr:
        pytest.skip(f"this checkout cannot be reached by others: {done.stderr[:200]}")
    return done


@pytest.fixture(scope="module")
def node() -> Iterator[DemoNode]:
    """A server of root's."""
    with DemoNode() as started:
        started.wait_ready(60.0)
        yield started


def _checked(node: DemoNode, as_whom: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sources by name, and the lines of the first rank by name."""
    done = _run(Path("/"), as_whom, "check", "--json", "--pid", str(node.pid), "--window", "1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    document = json.loads(done.stdout)
    sources = {source["name"]: source for source in document["sources"]}
    return sources, {line["line"]: line for line in document["ranks"][0]["lines"]}


def test_an_ordinary_user_watches_a_node_of_his_own() -> None:
    done = _run(Path("/"), NOBODY, "demo", "--headless", "4")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("as_whom", [NOBODY, CONTAINERS_ROOT], ids=["another user", "a container's root"])
def test_what_may_not_be_seen_is_one_line_and_the_rest_goes_on(node: DemoNode, as_whom: str) -> None:
    sources, lines = _checked(node, as_whom)
    assert sources["pools"]["state"] == "error"
    assert sources["pools"]["detail"] == ("/proc/PID/maps of 8 ranks: permission denied (run as their user or as root)")
    for name in ("processes", "hostmem", "numa", "cgroup", "metrics", "loads", "server"):
        assert sources[name]["state"] == "ok", name
    assert lines["host.primary"]["seen"] is None
    assert lines["host.primary"]["status"] == "unknown"
    assert lines["host.anon"]["source"] == "measured"


def test_one_capability_is_enough(node: DemoNode) -> None:
    """As a systemd unit with AmbientCapabilities= gives it."""
    sources, lines = _checked(node, WITH_PTRACE)
    assert sources["pools"]["state"] == "ok"
    assert sources["placement"]["state"] == "ok"
    assert lines["host.primary"]["source"] == "measured"


def test_a_pid_namespace_shows_its_own_ranks_only(node: DemoNode) -> None:
    told = _run(Path("/"), IN_A_CONTAINER, "doctor", "--json").stdout
    checks = {check["subject"]: check for check in json.loads(told)["checks"]}
    assert checks["processes"]["detail"] == "0 SGLang servers, 0 ranks"
    assert checks["pid namespace"]["detail"] == "a container's own"
    assert "hostPID" in checks["pid namespace"]["remedy"]
    done = _run(Path("/"), IN_A_CONTAINER, "demo", "--headless", "3")
    assert (done.returncode, done.stderr) == (0, ""), "and its own ones it does show"


def test_from_the_host_ranks_in_a_pid_namespace_are_seen(tmp_path: Path) -> None:
    """hostPID: the watcher is outside, the ranks are inside."""
    inside = subprocess.Popen(
        [*IN_A_CONTAINER.split(), str(RANKTOP), "demo", "--headless", "30"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert inside.stdout is not None
    try:
        url = inside.stdout.readline().partition("url=")[2].split()[0]
        inside.stdout.readline()
        done = _run(tmp_path, "env", "check", "--json", "--url", url, "--window", "1")
        document = json.loads(done.stdout)
        assert len(document["ranks"]) == 8
        assert {rank["pid"] is not None for rank in document["ranks"]} == {True}
        lines = {line["line"]: line for line in document["ranks"][0]["lines"]}
        assert lines["host.primary"]["source"] == "measured"
    finally:
        # unshare itself ignores SIGTERM while it waits.
        for demo in psutil.Process(inside.pid).children():
            demo.terminate()
        inside.communicate(timeout=20)


def test_an_interpreter_that_cannot_be_started_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(DemoError, match="cannot be started: No such file"), DemoNode():
        pass
