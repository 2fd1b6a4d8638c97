"""What stands before a log line's message: container framing, stamps, rank tags, colours.

SGLang's own prefix is `[YYYY-mm-dd HH:MM:SS{.mmm} TAGS] ` in local time without a zone (`utils/common.py`,
`configure_logger`, 0.5.14 to 0.5.23). Around it can stand CRI framing (`TIME stdout F text`, kubernetes
cri-api), docker's json-file, a compose name and `|`, an RFC 3339 stamp, a level and a logger's name.
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from ranktop.sample import RankTag

MAX_LINE_CHARACTERS = 16_384
"""A longer line is cut: only `server_args` is longer, and its reader asks for more."""
MAX_ARGS_CHARACTERS = 262_144

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) (stdout|stderr) ([FP]) (.*)", re.DOTALL)
_COMPOSE = re.compile(r"[\w.-]+\s+\| ")
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)) +")
# The tags are one flat class and split later: nested repeats would let a hostile line take exponential time.
_BRACKET = re.compile(
    r"\[(?:(?P<date>\d{4}-\d\d-\d\d) )?(?P<time>\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)?(?P<tags>[A-Za-z_. \d]{0,120})\] ?"
)
_TAG = re.compile(r"(DP|PP|ATTN_CP|MOE_DP|TP|EP)(\d{1,5})\Z")
_TAG_FIELDS = {"DP": "dp", "PP": "pp", "ATTN_CP": "cp", "MOE_DP": "moe_dp", "TP": "tp", "EP": "ep"}
_LEVEL = re.compile(r"(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL)(?::?\s+(?:(?:[A-Za-z_]\w*\.)+[\w<>]+: +)?|:[\w.]+:)")


class Framed(Struct, frozen=True):
    """A line without its container's framing. `is_partial`: the next line of this stream continues it."""

    text: str
    at_unix_seconds: float | None = None
    is_partial: bool = False
    stream: str = ""


class Prefix(Struct, frozen=True):
    """What a line's prefix says. `local` is the stamp as SGLang prints it, without a zone."""

    message: str
    tag: str | None = None
    local: datetime | None = None
    is_bracketed: bool = False
    """The line begins a record of SGLang's logger; one without continues a traceback or is somebody else's."""


class _DockerLine(Struct):
    log: str = ""
    time: str = ""
    stream: str = ""


_docker = msgspec.json.Decoder(_DockerLine)


def unframed(line: str) -> Framed:
    """Take off CRI, docker json-file, compose and RFC 3339 framing. Never raises."""
    at: float | None = None
    if line.startswith('{"log":'):
        try:
            docker = _docker.decode(line)
        except msgspec.DecodeError:
            return Framed(line)
        return Framed(docker.log.rstrip("\n"), rfc3339(docker.time), not docker.log.endswith("\n"), docker.stream)
    if line[:1].isdigit():
        cri = _CRI.match(line)
        if cri is not None:
            return Framed(cri[4], rfc3339(cri[1]), cri[3] == "P", cri[2])
    elif line[:1] != "[":
        compose = _COMPOSE.match(line)
        if compose is not None:
            line = line[compose.end() :]
    stamp = _RFC3339.match(line)
    if stamp is not None:
        at = rfc3339(stamp[1])
        line = line[stamp.end() :]
    return Framed(line, at)


def split_prefix(text: str) -> Prefix:
    """Take off SGLang's prefix, a level and a logger's name. Never raises."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    tag = local = None
    is_bracketed = False
    if text.startswith("["):
        bracket = _BRACKET.match(text)
        if bracket is not None and (bracket["time"] or bracket["tags"].strip()):
            is_bracketed = True
            local = _local(bracket["date"], bracket["time"])
            tag = _tag(bracket["tags"]) if bracket["tags"] else None
            text = text[bracket.end() :]
    level = _LEVEL.match(text)
    if level is not None:
        text = text[level.end() :]
        is_bracketed = True
    return Prefix(text, tag, local, is_bracketed)


def rfc3339(text: str) -> float | None:
    """Unix time of an RFC 3339 stamp with nanoseconds or less, None when it is none."""
    whole, dot, rest = text.partition(".")
    if dot:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        text = f"{whole}.{rest[: min(digits, 6)]:0<6}{rest[digits:]}"
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


@functools.lru_cache(maxsize=16)
def _local(date: str | None, time: str | None) -> datetime | None:
    """The stamp without a zone. A time without a date is of no use: it may be of any day."""
    if date is None or time is None:
        return None
    try:
        return datetime.fromisoformat(f"{date} {time.replace(',', '.')}" if len(time) == 8 else _padded(date, time))
    except ValueError:
        return None


def _padded(date: str, time: str) -> str:
    return f"{date} {time[:8]}.{time[9:]:0<6}"


@functools.lru_cache(maxsize=1024)
def _tag(text: str) -> str | None:
    """SGLang's tag from the words of a prefix; unknown words (a disaggregation mode) are left out."""
    parts: dict[str, int] = {}
    for word in text.split():
        match = _TAG.match(word)
        if match is not None:
            parts[_TAG_FIELDS[match[1]]] = int(match[2])
    return str(RankTag(**parts)) if parts else None
