"""The server's own Prometheus files, past its HTTP server: readable while that hangs, and per process.

Every process of the server maps files in `PROMETHEUS_MULTIPROC_DIR`; `/metrics` merges them. Layout: `mmap_dict.py` of
prometheus_client 0.21 to 0.26: used bytes (int32), then per value a JSON key, padded to 8 bytes, and two doubles. They
are read with plain reads, never mapped and never locked: a value that is being written may be one write old.
"""

from __future__ import annotations

import json
import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from collectors.procfs import environ_value, read_file
from ranktop.reconcile.families import SERIES_NAMES
from ranktop.sample import MetricsPage, NoData, Processes, SeriesKey, SourceError

MAX_FILES = 1024
MAX_FILE_BYTES = 8 << 20

_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_NAME = re.compile(r"(counter|histogram|gauge_[a-z]+)_(\d+)\.db")
_HEADER_BYTES = 8
_MAX_KEY_BYTES = 16_384
_BLANK = 2.0**63


class MultiprocCollector:
    """Reads the files of one server, found through its ranks' environment. Off until `is_needed` says so."""

    name = "multiproc"
    part = "multiproc"

    def __init__(
        self,
        server: str,
        is_needed: Callable[[], bool],
        proc_root: str = "/proc",
        period_seconds: float = 5.0,
    ) -> None:
        self.server: str | None = server
        self._id = server
        self._is_needed = is_needed
        self._proc_root = proc_root
        self.period_seconds = period_seconds

    def read(self, processes: Processes | None, now: float) -> MetricsPage:
        """All values, each series with the `pid` of its process. NoData while `/metrics` answers."""
        if not self._is_needed():
            raise NoData("not read: /metrics answers", "not_needed")
        started = time.monotonic()
        folder = self._folder(processes)
        values, size = read_folder(folder)
        took = time.monotonic() - started
        return MetricsPage(self._id, now + took, took, size, tuple(values), tuple(values.values()))

    def _folder(self, processes: Processes | None) -> Path:
        pids = [rank.pid for rank in processes.ranks if rank.server == self._id] if processes is not None else []
        for pid in pids:
            try:
                environ = read_file(f"{self._proc_root}/{pid}/environ")
            except OSError:
                continue
            folder = environ_value(environ, _VARIABLE)
            if folder:
                return Path(f"{self._proc_root}/{pid}/root") / folder.lstrip("/")
        raise NoData(
            f"metric files of {self._id}: no rank's environment names {_VARIABLE} (metrics off, or run as its owner)",
            "no_folder",
        )


def read_folder(folder: Path) -> tuple[dict[SeriesKey, float], int]:
    """Values of every `.db` file of the wanted families, buckets made cumulative, and the bytes read."""
    try:
        names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))[:MAX_FILES]
    except OSError as error:
        raise SourceError(f"metric files {folder}: {error.strerror} (run as the server's owner)", "no_folder") from None
    points: dict[SeriesKey, float] = {}
    size = 0
    for name in names:
        match = _NAME.fullmatch(name)
        assert match is not None
        try:
            with (folder / name).open("rb") as file:
                data = file.read(MAX_FILE_BYTES)
        except OSError:
            continue
        size += len(data)
        for key, value in parse_file(data):
            series = _series(key, match[2])
            if series is not None and -_BLANK < value < _BLANK:
                points[series] = value
    return _accumulated(points), size


def parse_file(data: bytes) -> Iterator[tuple[str, float]]:
    """JSON key and value of each entry. Ends at the first entry that does not fit: the file grows while it is read."""
    if len(data) < _HEADER_BYTES:
        return
    used = min(struct.unpack_from("i", data)[0], len(data))
    position = _HEADER_BYTES
    while position + 4 <= used:
        length: int = struct.unpack_from("i", data, position)[0]
        value_at = position + 4 + length + (8 - (length + 4) % 8)
        if not 0 < length <= _MAX_KEY_BYTES or value_at + 16 > used:
            return
        key = data[position + 4 : position + 4 + length].decode("utf-8", "replace")
        yield key, struct.unpack_from("d", data, value_at)[0]
        position = value_at + 16


def _series(key: str, pid: str) -> SeriesKey | None:
    """The series of a JSON key `[family, sample, labels, help]`, None for one that is not read."""
    try:
        _, name, labels, *_ = json.loads(key)
    except (ValueError, RecursionError):
        return None
    if name not in SERIES_NAMES or not isinstance(labels, dict):
        return None
    pairs = tuple((str(label), str(value)) for label, value in sorted(labels.items()))
    return SeriesKey(name, (*pairs, ("pid", pid)))


def _accumulated(points: dict[SeriesKey, float]) -> dict[SeriesKey, float]:
    """The files hold each bucket's own count and no total; a page has running sums and `_count`."""
    buckets: dict[SeriesKey, list[tuple[float, SeriesKey, float]]] = {}
    found: dict[SeriesKey, float] = {}
    for key, value in points.items():
        bound = key.label("le") if key.name.endswith("_bucket") else None
        if bound is None:
            found[key] = value
            continue
        labels = tuple(pair for pair in key.labels if pair[0] != "le")
        count = SeriesKey(f"{key.name.removesuffix('_bucket')}_count", labels)
        try:
            buckets.setdefault(count, []).append((float(bound), key, value))
        except ValueError:
            continue
    for count, rows in buckets.items():
        running = 0.0
        for _, key, value in sorted(rows, key=lambda row: row[0]):
            running += value
            found[key] = running
        found[count] = running
    return found
