"""Secrets dropped at the door: what an answer or a log line must lose before anything keeps, draws or records it."""

from __future__ import annotations

import json
import re
from typing import Any

DROPPED = "(dropped)"

_MAX_DEPTH = 8
_SECRET_NAME = re.compile(
    r"api_?key|passw|secret|credential|authorization|access_?key|private_?key|watermark_key|(^|_)token$", re.IGNORECASE
)
_SHELL_LINES = frozenset({"launch_command", "env_vars"})
_USER_INFO = re.compile(r"(\w+://)[^/\s@]+@")


def is_secret(name: str) -> bool:
    """Whether a field of that name is never kept. `max_tokens` and `token_usage` are not secrets."""
    return name in _SHELL_LINES or _SECRET_NAME.search(name.replace("-", "_")) is not None


def without_secrets(value: Any, depth: int = 0) -> Any:
    """The same JSON value without secret fields, user info in URLs, and secrets in JSON inside strings."""
    if depth > _MAX_DEPTH:
        return DROPPED
    if isinstance(value, dict):
        return {
            str(name): without_secrets(field, depth + 1) for name, field in value.items() if not is_secret(str(name))
        }
    if isinstance(value, list | tuple):
        return [without_secrets(item, depth + 1) for item in value]
    return _text_without_secrets(value, depth) if isinstance(value, str) else value


def _text_without_secrets(text: str, depth: int) -> str:
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.dumps(without_secrets(json.loads(text), depth + 1))
        except (ValueError, RecursionError):
            return DROPPED if _SECRET_NAME.search(text) else text
    return _USER_INFO.sub(r"\1", text)
