"""A node for recordings: every field of every sample type filled, moving as such a field moves.

Found from the type hints and the field metadata, so that a new field is recorded, measured and compared by itself.
"""

from __future__ import annotations

import functools
import random
import types
import typing
import zlib
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Struct
from msgspec.structs import replace

from ranktop.reconcile.families import FAMILIES
from ranktop.recording.parts import hints_of
from ranktop.sample import (
    Cgroup,
    Field,
    Gpus,
    Host,
    LoadSnapshot,
    Mapping,
    MetricsPage,
    NumaNode,
    Placement,
    Processes,
    RankProcess,
    RankTag,
    Sample,
    SeriesKey,
    ServerInfo,
    ServerProcess,
    SourceState,
)
from ranktop.sample.gpu import Gpu

SERVER = "127.0.0.1:30000"
START = 1_790_000_000.0
_LIVELY = (0.0, 0.0, 0.05, 0.5)
"""How likely a field changes from one reading to the next; which of these it is, its name decides.

Half of them stand still, as in an hour of `ranktop demo`, where 250 of 519 series moved in a minute.
"""
_SOURCES = (
    ("processes", 1.0),
    ("hostmem", 1.0),
    ("cgroup", 1.0),
    ("pools", 1.0),
    ("numa", 1.0),
    ("placement", 10.0),
    ("nvml", 1.0),
    ("metrics", 5.0),
    ("loads", 5.0),
    ("server", 3600.0),
    ("serverlog", 1.0),
    ("kernellog", 1.0),
)


class SyntheticNode:
    """`ranks` ranks under one server; sample `n` is a function of the seed and of how many were taken before."""

    def __init__(self, ranks: int = 8, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._ranks = ranks
        self._state: dict[tuple[Any, ...], Any] = {}
        self._second = 0
        self._page: MetricsPage | None = None
        self._loads: tuple[LoadSnapshot, ...] = ()
        self._placements: dict[int, tuple[Placement, ...]] = {}
        args = {f"argument_{index}": index if index % 3 else f"value {index}" for index in range(420)}
        self._info = self._filled(ServerInfo, ("info",), server=SERVER, args=args)
        # As the collector does it: the same object as long as nothing changed.
        self._mappings = {
            pid: tuple(
                Mapping(pid, 0x7F00_0000_0000 + pool, 120_000_012_288, "shared_anon", 4096, 7, "0:1", True)
                for pool in range(6)
            )
            for pid in self._pids()
        }
        self._read = {name: START for name, _ in _SOURCES}
        self._took = {name: 0.001 for name, _ in _SOURCES}

    def samples(self, count: int) -> Iterator[Sample]:
        """The next `count` seconds."""
        return (self.sample() for _ in range(count))

    def sample(self) -> Sample:
        """The next second."""
        second, self._second = self._second, self._second + 1
        at = START + second + self._random.uniform(0, 0.002)
        for name, period in _SOURCES:
            if second % period == 0:
                self._read[name] = at - self._random.uniform(0, 0.5)
                self._took[name] = self._random.uniform(0.0001, 0.02)
        if second % 5 == 0:
            self._page = MetricsPage(SERVER, self._read["metrics"], self._took["metrics"], 310_000, *self._points(), 90)
            self._loads = (self._filled(LoadSnapshot, ("load",), server=SERVER, dp_rank=0),)
        if second % 10 == 0:
            self._placements = {
                pid: tuple(
                    self._filled(Placement, ("placement", pid, pool), pid=pid, pages_by_node=((0, 128), (1, 128)))
                    for pool in range(2)
                )
                for pid in self._pids()
            }
        assert self._page is not None
        return Sample(
            at_unix_seconds=at,
            at_monotonic_seconds=1000.0 + second,
            host_name="node-a",
            sources=tuple(
                SourceState(name, "ok", name, None, "", "", self._read[name], self._took[name], period)
                for name, period in _SOURCES
            ),
            processes=Processes(
                servers=(self._filled(ServerProcess, ("server",), id=SERVER, argv=("python", "-m", "sglang")),),
                ranks=tuple(
                    self._filled(
                        RankProcess,
                        ("rank", pid),
                        server=SERVER,
                        tag=RankTag(tp=index),
                        pid=pid,
                        state=self._random.choice("SSSSSR"),
                    )
                    for index, pid in enumerate(self._pids())
                ),
                boot_unix_seconds=START - 8000,
            ),
            host=self._filled(Host, ("host",)),
            numa=tuple(
                self._filled(NumaNode, ("node", node), node=node, distances=((0, 10), (1, 32))) for node in range(2)
            ),
            cgroups={pid: self._filled(Cgroup, ("cgroup", pid)) for pid in self._pids()},
            mappings=self._mappings,
            placements=self._placements,
            gpus=Gpus(
                driver_version="580.105.08",
                gpus=tuple(self._filled(Gpu, ("gpu", index), index=index) for index in range(self._ranks)),
            ),
            metrics={SERVER: self._page},
            infos={SERVER: self._info},
            loads={SERVER: self._loads},
        )

    def _pids(self) -> range:
        return range(4242, 4242 + self._ranks)

    def _points(self) -> tuple[tuple[SeriesKey, ...], tuple[float, ...]]:
        keys = self._state.get(("keys",))
        if keys is None:
            keys = self._state["keys",] = tuple(
                SeriesKey(name, (("engine_type", "unified"), ("model_name", "GLM-5.2-FP8"), ("tp_rank", str(tp)), *le))
                for family in FAMILIES.values()
                for name in family.series_names
                for tp in range(self._ranks if family.writer != "http" else 1)
                for le in ([(("le", str(2**bucket)),) for bucket in range(20)] if name.endswith("_bucket") else [()])
            )
            self._state["values",] = [float(self._random.randrange(1000)) for _ in keys]
        values = self._state["values",]
        for index, key in enumerate(keys):
            if key.name.endswith(("_total", "_bucket", "_count", "_sum")):
                if self._random.random() < _lively(key):
                    values[index] += self._random.randrange(1, 400)
            elif self._random.random() < _lively(key):
                values[index] = float(self._random.randrange(2_000_000))
        return keys, tuple(values)

    def _filled(self, record: type, where: tuple[Any, ...], **given: Any) -> Any:
        """A `record` whose fields have each moved on by a second; `where` tells equal records apart."""
        known = self._state.get(where)
        fields = {
            name: self._moved(record, name, hint, getattr(known, name, None), where)
            for name, hint in hints_of(record).items()
            if name not in given
        }
        value = self._state[where] = replace(known, **fields, **given) if known else record(**fields, **given)
        return value

    def _moved(self, record: type, name: str, hint: Any, before: Any, where: tuple[Any, ...]) -> Any:
        kind, meta = _kind_of(hint)
        rng = self._random
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self._filled(kind, (*where, name))
        if kind not in (int, float, bool):
            return _text(name, kind) if before is None else before
        if before is None:
            return {int: rng.randrange(1 << 20, 1 << 37), float: rng.uniform(0, 100), bool: False}[kind]
        if kind is bool or meta is None or meta.kind == "label" or rng.random() >= _lively(*where, name):
            return before
        if meta.kind == "counter":
            return before + rng.randrange(1, 5000)
        if kind is float:
            return float(rng.randrange(100)) if meta.unit == "percent" else round(rng.uniform(0, 700), 1)
        return max(0, before + 4096 * rng.randrange(-300, 300))


@functools.cache
def _lively(*name: object) -> float:
    return _LIVELY[zlib.crc32(repr(name).encode()) % len(_LIVELY)]


def _kind_of(hint: Any) -> tuple[Any, Field | None]:
    meta: Field | None = None
    if get_origin(hint) is Annotated:
        meta = next((extra for extra in get_args(hint)[1:] if isinstance(extra, Field)), None)
        hint = get_args(hint)[0]
    if get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(arg for arg in get_args(hint) if arg is not type(None))
    return hint, meta


def _text(name: str, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    return {tuple: (), dict: {}}.get(get_origin(kind) or kind, f"a {name}")
