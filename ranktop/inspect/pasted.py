"""Text that people paste: a log, commands with their output, or all in one. Every reader takes its own lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC

from collectors.kernellog import parse_text
from collectors.serverlog_events import LogAssembler
from ranktop.plan import LaunchRequest, parse_launch
from ranktop.plan.plan import PlanError
from ranktop.sample import Event, SourceState

_LINES_AT_ONCE = 1000
_KERNEL_WORDS = (
    "Out of memory",
    "out of memory",
    "oom-kill",
    "Xid",
    "Cannot map memory",
    "NVRM",
    "blocked for more",
    "oom.group",
)
_LAUNCH = re.compile(r"\bsglang\.launch_server\b|\bsglang serve\b|\blaunch_server\.py\b")
_BARE_FLAGS = re.compile(r"\s*--(?:enable|hicache|tp|model|dp|attn|disaggregation|kv-cache|mem-fraction)\b")
_MAX_LAUNCH_LINES = 200
_NVML_FAILED = re.compile(r"Failed to initialize NVML: (.{1,200})")
_DRIVER = re.compile(r"NVRM version: .*?\s(\d{3}(?:\.\d+)+)\s*")
_SCRAPE = re.compile(r'"GET /metrics/? HTTP/[\d.]+" (\d{3})')
_SCRAPE_CODES = {"401": "http_401", "403": "http_403", "404": "http_404"}


def log_events(lines: Sequence[str], server: str, written_unix_seconds: float) -> tuple[Event, ...]:
    """The events of SGLang's log in these lines. Stamps without a zone are UTC, unless the file's own time tells."""
    assembler = LogAssembler(server)
    last = next((line for line in reversed(lines) if line.strip()), "")
    assembler.set_zone(last, written_unix_seconds)
    assembler.zone = assembler.zone or UTC
    found: list[Event] = []
    # In pieces, as events of one piece are bounded, and of batch lines only the newest is kept.
    for start in range(0, len(lines), _LINES_AT_ONCE):
        assembler.feed(lines[start : start + _LINES_AT_ONCE], written_unix_seconds)
        found.extend(assembler.take())
    return tuple(found)


def kernel_events(lines: Sequence[str], written_unix_seconds: float) -> tuple[Event, ...]:
    """OOM kills, XIDs, failed pins in the lines that could hold one."""
    text = "\n".join(line for line in lines if any(word in line for word in _KERNEL_WORDS))
    return tuple(parse_text(text, at_unix_seconds=written_unix_seconds)) if text else ()


def launches(lines: Sequence[str]) -> Iterator[LaunchRequest | PlanError]:
    """Launch lines and bare flags, each with its continuation lines."""
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        is_launch = "launch_server" in line or "serve" in line
        if "server_args=" in line or not ((is_launch and _LAUNCH.search(line)) or _BARE_FLAGS.match(line)):
            continue
        words = [line]
        while words[-1].rstrip().endswith("\\") and index < len(lines) and len(words) < _MAX_LAUNCH_LINES:
            words.append(lines[index])
            index += 1
        try:
            request = parse_launch("\n".join(words))
        except PlanError as problem:
            # The indented flags of a help text have words where values stand.
            if not line.startswith(" "):
                yield problem
            continue
        # A help text has flags at the beginning of its lines too, with prose behind them.
        is_prose = not _LAUNCH.search(line) and any(not word.startswith("--") for word in request.unknown_flags)
        if request.flags and not is_prose:
            yield request


def failed_sources(lines: Sequence[str], server: str, at_unix_seconds: float) -> Iterator[SourceState]:
    """What a paste shows to have failed for whoever made it: NVML, and the last scrape of `/metrics`."""
    scrape: str | None = None
    told = [line for line in lines if "NVML" in line or "NVRM" in line or "/metrics" in line]
    driver = next((match[1] for line in told if (match := _DRIVER.search(line))), None)
    for line in told:
        match = _NVML_FAILED.search(line)
        if match is not None:
            loaded = f" (driver {driver} is loaded)" if driver else ""
            yield SourceState(
                "nvml",
                "error",
                part="gpus",
                code="version_mismatch" if "mismatch" in match[1] else "error",
                detail=f"nvidia-smi said: {match[1].strip()}{loaded}",
                at_unix_seconds=at_unix_seconds,
            )
        match = _SCRAPE.search(line)
        scrape = match[1] if match is not None else scrape
    if scrape is not None and scrape != "200":
        code = _SCRAPE_CODES.get(scrape) or ("http_3xx" if scrape.startswith("3") else "error")
        detail = f"GET /metrics was answered with {scrape}"
        yield SourceState("metrics", "error", part="metrics", server=server, code=code, detail=detail)
