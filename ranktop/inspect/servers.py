"""Which of the things found belong to one server, and what that server is called."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ranktop.inspect.evidence import Evidence
from ranktop.plan import LaunchRequest

_EVERYWHERE = ("0.0.0.0", "::", "[::]", "*", "")


class Server(Struct):
    """One server as the files show it. `id` is host:port, else the name of the file that shows it first."""

    id: str
    info: dict[str, Any] | None = None
    launch: LaunchRequest | None = None
    pages: list[tuple[str, bytes]] = []
    texts: list[str] = []
    """Names of the texts that are its log."""


def servers_of(evidence: Evidence) -> list[Server]:
    """Every server. Things without an address belong to the only server there is; else each is its own."""
    servers: dict[str, Server] = {}
    for name, info in evidence.infos:
        _known(servers, _address(info) or _short(name)).info = info
    unnamed: list[str] = []
    for text in evidence.texts:
        args = next((e.fields.get("args") for e in reversed(text.events) if e.kind == "server_args"), None)
        address = _address(args) if args else None
        if address is not None:
            _known(servers, address).texts.append(text.name)
        else:
            unnamed.append(text.name)
    for name, launch in evidence.launches:
        _place_launch(servers, name, launch, unnamed)
    if len(unnamed) == 1 or len(servers) == 1:
        for name in unnamed:
            _only(servers, name).texts.append(name)
    else:
        for name in unnamed:
            _known(servers, _short(name)).texts.append(name)
    _place_pages(servers, evidence.pages)
    if evidence.requests and not servers:
        _known(servers, "requests")
    return list(servers.values())


def _place_launch(servers: dict[str, Server], name: str, launch: LaunchRequest, unnamed: Sequence[str]) -> None:
    address = _address(launch.flags)
    if address is None:
        # A launch beside a log in one paste is that log's.
        _only(servers, unnamed[0] if unnamed else name).launch = launch
    else:
        _known(servers, address).launch = launch


def _place_pages(servers: dict[str, Server], pages: Sequence[tuple[str, bytes]]) -> None:
    """Successive pages are one server's, unless their labels name another role or model."""
    groups: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
    for name, data in pages:
        groups.setdefault(_labels(data), []).append((name, data))
    for group in groups.values():
        if len(groups) == 1:
            _only(servers, group[0][0]).pages += group
        else:
            _known(servers, _short(group[0][0])).pages += group


def _labels(data: bytes) -> tuple[str, str]:
    head = data[: 1 << 16].decode("utf-8", "replace")
    role, model = (head.partition(f'{label}="')[2].partition('"')[0] for label in ("engine_type", "model_name"))
    return role, model


def _only(servers: dict[str, Server], name: str) -> Server:
    """The one server there is, or a new one of that name."""
    if len(servers) == 1:
        return next(iter(servers.values()))
    return _known(servers, _short(name))


def _known(servers: dict[str, Server], server: str) -> Server:
    return servers.setdefault(server, Server(server, pages=[], texts=[]))


def _address(fields: Mapping[str, Any]) -> str | None:
    host, port = fields.get("host"), fields.get("port")
    if not isinstance(port, int) or isinstance(port, bool):
        return None
    host = host if isinstance(host, str) and host not in _EVERYWHERE else "127.0.0.1"
    return f"{host}:{port}"


def _short(name: str) -> str:
    return posixpath.basename(name.rstrip("/")) or name
