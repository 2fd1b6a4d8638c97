"""The words of a launch inside a pod specification: `command:` and `args:` lists, or a bare YAML or JSON list."""

from __future__ import annotations

from typing import Any

import yaml


def words_of_yaml(text: str) -> list[str] | None:
    """The words of the container in `text` that launches SGLang; None when the text is no such list."""
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except yaml.YAMLError:
        return None
    if isinstance(document, list):
        return [str(word) for word in document if not isinstance(word, dict | list)] or None
    candidates = list(_containers(document))
    launching = [words for words in candidates if any("sglang" in word for word in words)]
    with_flags = [words for words in candidates if any(word.startswith("--") for word in words)]
    return next(iter(launching or with_flags), None)


def _containers(node: Any) -> list[list[str]]:
    found: list[list[str]] = []
    if isinstance(node, dict):
        words = [*_env(node.get("env")), *_strings(node.get("command")), *_strings(node.get("args"))]
        if "command" in node or "args" in node:
            found.append(words)
        for child in node.values():
            found += _containers(child)
    elif isinstance(node, list):
        for child in node:
            found += _containers(child)
    return found


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        from ranktop.plan.words import split_words

        return split_words(value)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _env(value: Any) -> list[str]:
    entries = value if isinstance(value, list) else []
    pairs = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("value"), str)]
    return [f"{entry.get('name')}={entry['value']}" for entry in pairs]
