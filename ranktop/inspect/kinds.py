"""What a file is, told by its content and never by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ranktop.inspect.found import MAX_LINE_CHARACTERS

Kind = Literal[
    "metrics page",
    "server info",
    "nvidia-smi XML",
    "kernel journal",
    "launch",
    "samples",
    "meminfo",
    "node meminfo",
    "vmstat",
    "pressure",
    "request records",
    "contents of a bundle",
    "text",
    "unknown",
]

_HEAD = 1 << 20
_TYPED = re.compile(r"^# TYPE [a-zA-Z_:][\w:]* (?:counter|gauge|histogram|summary|untyped)$", re.MULTILINE)
_SGLANG_SERIES = re.compile(r"^sglang[:_]\w+(?:\{[^\n]*\})? [-+\d.eEinfNa]+(?: \d+)?\r?$", re.MULTILINE)
_ANY_SERIES = re.compile(r"^[a-zA-Z_:][\w:]*\{[^\n]*\} [-+\d.eEinfNa]+(?: \d+)?\r?$", re.MULTILINE)
_POD = re.compile(r"^[ \t]*(?:- )?(?:args|command):|^[ \t]*- --\w", re.MULTILINE)
_MAX_CONTROL_SHARE = 0.1
_MAX_JSON_DEPTH = 16


def kind_of(data: bytes) -> tuple[Kind, str]:
    """The kind and, for one that is not used, why."""
    head = data[:_HEAD]
    if not head.strip():
        return "unknown", "empty"
    if head.startswith(b"SQLite format 3\0"):
        return "unknown", "a recording: open it with `ranktop replay`"
    if b"\0" in head[:65536] and not _has_few_nuls(head[:65536]):
        return "unknown", "binary"
    text = head.replace(b"\0", b"").decode("utf-8", "replace")
    stripped = text.lstrip("\ufeff \t\r\n")
    if "<nvidia_smi_log>" in stripped[:4096]:
        return "nvidia-smi XML", ""
    if stripped.startswith(("{", "[")):
        found = _json_kind(data, stripped)
        if found is not None:
            return found
    if _TYPED.search(text) or _SGLANG_SERIES.search(text):
        has_sglang = _SGLANG_SERIES.search(text) is not None or re.search(r"^# TYPE sglang[:_]", text, re.M)
        return ("metrics page", "") if has_sglang else ("unknown", "a metrics page without SGLang's families")
    if len(_ANY_SERIES.findall(text[:65536])) > 1 and text.count("\n") < 2 * len(_ANY_SERIES.findall(text[:65536])):
        return "unknown", "a metrics page without SGLang's families"
    if re.match(r"MemTotal:\s+\d+ kB", stripped):
        return "meminfo", ""
    if re.match(r"Node \d+ MemTotal:\s+\d+ kB", stripped):
        return "node meminfo", ""
    if re.match(r"some avg10=[\d.]+ avg60=", stripped):
        return "pressure", ""
    if stripped.startswith("Made by ranktop bundle."):
        return "contents of a bundle", ""
    if re.match(r"nr_free_pages \d+", stripped):
        return "vmstat", ""
    if "sglang" in text and _POD.search(text):
        return "launch", ""
    return _text_kind(text)


def lines_of(data: bytes) -> list[str]:
    """Lines as text, each cut where none that is of use is longer."""
    text = data.decode("utf-8", "replace")
    return [line[:MAX_LINE_CHARACTERS].rstrip("\r").lstrip("\0") for line in text.split("\n")]


def text_of(data: bytes) -> list[str]:
    """Lines of a text; of a JSON value, those of all its strings: an answer of a server carries its words."""
    value = decoded(data) if data.lstrip()[:1] == b"{" else None
    return [line for text in _strings(value, 0) for line in text.split("\n")] if value is not None else lines_of(data)


def _strings(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:MAX_LINE_CHARACTERS]
    elif depth < _MAX_JSON_DEPTH:
        if isinstance(value, dict):
            value = list(value.values())
        for item in value if isinstance(value, list) else ():
            yield from _strings(item, depth + 1)


def decoded(data: bytes) -> Any:
    """The JSON value, None for what is none."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


def _json_kind(data: bytes, stripped: str) -> tuple[Kind, str] | None:
    first = stripped.partition("\n")[0]
    if first.startswith('{"ranktop_samples":'):
        return "samples", ""
    if '"__REALTIME_TIMESTAMP"' in first and '"MESSAGE"' in first:
        return "kernel journal", ""
    if '"request_finished_ts"' in first and first.startswith("{"):
        return "request records", ""
    if first.startswith('{"log":') and '"stream"' in first:
        return "text", ""
    value = decoded(data)
    if not isinstance(value, dict):
        return ("unknown", "JSON of no kind that is read") if value is not None else None
    if "internal_states" in value or {"tp_size", "model_path"} <= value.keys():
        return "server info", ""
    if "num_hidden_layers" in value or "text_config" in value:
        return "unknown", "a model's config.json: give it to `ranktop plan --model-config`"
    if "apiVersion" in value or "containers" in value:
        return "launch", ""
    # An answer or an error pasted as JSON carries SGLang's own words.
    return "text", ""


def _text_kind(text: str) -> tuple[Kind, str]:
    sample = text[:65536]
    odd = sum(not (letter.isprintable() or letter in "\t\r\n\x1b") or letter == "\ufffd" for letter in sample)
    if odd > len(sample) * _MAX_CONTROL_SHARE:
        return "unknown", "binary"
    return "text", ""


def _has_few_nuls(head: bytes) -> bool:
    """A log that was truncated under its writer has one run of NULs."""
    return len([part for part in head.split(b"\0") if part]) <= 2 and head.count(b"\0") < len(head)
