"""Connections by listening port, of real sockets and of any text."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.connections import ConnectionsCollector, established_by_port
from ranktop.sample import NoData, Processes, ServerProcess


def processes(pid: int | None) -> Processes:
    return Processes(servers=(ServerProcess(id="a:1", pid=pid, start_ticks=1),))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_clients_at_the_door(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"no {host} here")
    collector = ConnectionsCollector("a:1")
    port = listener.getsockname()[1]
    with listener:
        assert collector.read(processes(os.getpid()), 0.0).established_by_port[port] == 0
        clients = [socket.create_connection((host, port)) for _ in range(3)]
        found = collector.read(processes(os.getpid()), 0.0)
        for client in clients:
            client.close()
    assert found.established_by_port[port] == 3
    assert found.is_other_network is False
    assert clients[0].fileno() == -1


def test_another_network_namespace(tmp_path: Path) -> None:
    for name, namespace in (("42", "net:[1]"), ("self", "net:[2]")):
        (tmp_path / name / "ns").mkdir(parents=True)
        (tmp_path / name / "ns" / "net").symlink_to(namespace)
    (tmp_path / "42" / "net").mkdir()
    line = "   0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000"
    (tmp_path / "42" / "net" / "tcp").write_text(f"  sl  local_address\n{line}\n")
    found = ConnectionsCollector("a:1", str(tmp_path)).read(processes(42), 0.0)
    assert (found.established_by_port, found.is_other_network) == ({30000: 0}, True)


def test_not_seen_or_not_readable(tmp_path: Path) -> None:
    for known, code in ((None, "no_process"), (processes(None), "no_process"), (processes(42), "no_permission")):
        with pytest.raises(NoData) as caught:
            ConnectionsCollector("a:1", str(tmp_path)).read(known, 0.0)
        assert caught.value.code == code


@given(st.binary(max_size=200))
def test_any_table_is_read(text: bytes) -> None:
    established_by_port([b"head\n" + text])
