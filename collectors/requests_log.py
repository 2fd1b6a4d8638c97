"""Finished requests from SGLang's `--export-metrics-to-file`: one JSON line each, a file an hour.

Source: `observability/request_metrics_exporter.py` and the meta_info of `managers/tokenizer_manager.py`, 0.5.18. Of a
line only token counts and times are decoded; request parameters and text are skipped, never kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from collectors.cmdline import option
from collectors.follow import FileFollower
from collectors.json_values import LARGEST
from ranktop.sample import NoData, Processes, RequestRecord

TAIL_BYTES = 1 << 20
MAX_RECORDS = 5000
"""Most records of one read: the newest."""
HIT_SHARE = 0.5
"""A prompt cached to at least this share counts as a hit of the deepest tier that took part, less as partial."""

_NAME = re.compile(r"sglang-request-metrics-\d{8}_\d{2}\.log")


_Count = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]


class _Details(msgspec.Struct):
    device: _Count | None = None
    host: _Count | None = None
    storage: _Count | None = None


class _Line(msgspec.Struct):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cached_tokens: _Count | None = None
    cached_tokens_details: _Details | None = None
    e2e_latency: float | None = None
    queue_time: float | None = None
    request_received_ts: float | None = None
    prefill_finished_time: float | None = None
    request_finished_ts: float | None = None
    spec_accept_length: float | None = None
    spec_verify_ct: _Count | None = None
    dp_rank: _Count | None = None
    finish_reason: dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(_Line, strict=False)


class RequestsCollector:
    """Follows the newest file of one server's export folder, found from its command line or given."""

    name = "requests"
    part = "requests"

    def __init__(
        self, server: str, directory: Path | None = None, proc_root: str = "/proc", period_seconds: float = 2.0
    ) -> None:
        self.server: str | None = server
        self._id = server
        self._directory = directory
        self._proc_root = Path(proc_root)
        self.period_seconds = period_seconds
        self._path: Path | None = None
        self._follower: FileFollower | None = None

    def read(self, processes: Processes | None, now: float) -> tuple[RequestRecord, ...]:
        """Requests that finished since the last read. NoData where the server exports none."""
        newest = newest_file(self._directory or self._found(processes))
        lines = self._follower.read_lines() if self._follower is not None else []
        # The old hour's file was read to its end before the new one is opened.
        if newest != self._path and not lines:
            first = self._follower is None
            self.close()
            start = max(0, newest.stat().st_size - TAIL_BYTES) if first else 0
            self._path, self._follower = newest, FileFollower(newest, start)
            lines = self._follower.read_lines()
        return parse_lines(lines[-MAX_RECORDS:])

    def close(self) -> None:
        """Let go of the file."""
        if self._follower is not None:
            self._follower.close()
        self._path = self._follower = None

    def _found(self, processes: Processes | None) -> Path:
        main = next((main for main in processes.servers if main.id == self._id), None) if processes else None
        if main is None or main.pid is None:
            raise NoData(f"request records of {self._id}: its command line is not seen here", "no_process")
        folder = option(main.argv, "--export-metrics-to-file-dir")
        if folder is None:
            raise NoData(
                f"{self._id} exports no request records (--export-metrics-to-file --export-metrics-to-file-dir DIR "
                "at the next planned start)",
                "not_exported",
            )
        process = self._proc_root / str(main.pid)
        root = process / "root"
        base = root if folder.startswith("/") else process / "cwd"
        return base / folder.lstrip("/")


def newest_file(directory: Path) -> Path:
    """The export file of the latest hour. Raises NoData when there is none to read."""
    try:
        names = [path.name for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    except OSError as error:
        raise NoData(f"request records {directory}: {error.strerror} (run as the server's owner)", "no_file") from None
    if not names:
        raise NoData(
            f"request records {directory}: no sglang-request-metrics-*.log yet (no request finished)", "no_file"
        )
    return directory / max(names)


def parse_lines(lines: Iterable[bytes]) -> tuple[RequestRecord, ...]:
    """Records of the lines that can be read. A line that is no record is left out: it is written by many versions."""
    records: list[RequestRecord] = []
    for line in lines:
        try:
            records.append(_record(_decoder.decode(line)))
        except (msgspec.DecodeError, RecursionError):
            continue
    return tuple(records)


def population(prompt_tokens: int | None, cached_tokens: int | None, details: tuple[int | None, ...]) -> str:
    """`cold` (nothing cached: first sight or a miss), `partial`, `l1`, `l2`, `l3`, or `unknown` without the counts."""
    if prompt_tokens is None or cached_tokens is None or prompt_tokens <= 0:
        return "unknown"
    if cached_tokens <= 0:
        return "cold"
    if cached_tokens < HIT_SHARE * prompt_tokens:
        return "partial"
    _, host, storage = details
    return "l3" if storage else "l2" if host else "l1"


def _record(line: _Line) -> RequestRecord:
    details = line.cached_tokens_details or _Details()
    reason = (line.finish_reason or {}).get("type")
    return RequestRecord(
        population(line.prompt_tokens, line.cached_tokens, (details.device, details.host, details.storage)),
        line.request_finished_ts,
        line.prompt_tokens,
        line.cached_tokens,
        details.device,
        details.host,
        details.storage,
        line.completion_tokens,
        _span(line.request_received_ts, line.prefill_finished_time),
        line.e2e_latency,
        line.queue_time,
        line.spec_accept_length,
        line.spec_verify_ct,
        line.dp_rank,
        reason if isinstance(reason, str) else None,
    )


def _span(begin: float | None, end: float | None) -> float | None:
    return end - begin if begin is not None and end is not None and end >= begin else None
