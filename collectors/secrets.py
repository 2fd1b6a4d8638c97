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
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_KEY_SHAPE = re.compile(r"\b(?:sk|hf|ghp|gho|glpat|xoxb|AKIA)[-_]?[A-Za-z0-9_-]{16,}\b")
_ASSIGNED = re.compile(
    r"""(?<![\w-])(?P<name>[\w-]{0,64}?(?:api[_-]?key|passw|secret|credential|authorization|access[_-]?key"""
    r"""|private[_-]?key|watermark[_-]key)[\w-]{0,64}|(?:[\w-]{0,64}?[_-])?token|launch_command|env_vars)"""
    r"""(?P<quote>['"]?)(?P<between>\s*[:=]\s*|\s+)(?!--)(?P<value>'[^'\n]*'|"[^"\n]*"|[^\s,)}\]'"]+)""",
    re.IGNORECASE,
)
_NOT_SECRET_VALUES = frozenset({"None", "null", "True", "False", "true", "false", "''", '""'})


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


def prose_without_secrets(text: str) -> str:
    """A log line or a message without `--api-key X`, `api_key='X'`, bearer tokens, keys by their shape, user info."""
    # Before `Authorization:` takes the scheme for the value.
    text = _BEARER.sub(DROPPED, text)
    text = _ASSIGNED.sub(_without_value, text)
    text = _KEY_SHAPE.sub(DROPPED, text)
    return _USER_INFO.sub(r"\1", text)


def _without_value(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    # `--api-key VALUE` is a secret; `the password policy` is prose, and `#token: 266624` a count.
    is_prose = not match["between"].strip() and not name.startswith("--")
    is_count = value.isdigit() and name.lower().endswith("token")
    if value in _NOT_SECRET_VALUES or is_count or is_prose:
        return match[0]
    return f"{name}{match['quote']}{match['between']}{DROPPED}"


def _text_without_secrets(text: str, depth: int) -> str:
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.dumps(without_secrets(json.loads(text), depth + 1))
        except (ValueError, RecursionError):
            return DROPPED if _SECRET_NAME.search(text) else text
    return _USER_INFO.sub(r"\1", text)
