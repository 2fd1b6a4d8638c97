"""The words of a launch inside a pod specification: `command:` and `args:` lists, or a bare YAML or JSON list."""

from __future__ import annotations

from typing import Any

import yaml

from ranktop.plan.words import split_words


def words_of_yaml(text: str) -> list[str] | None:
    """The words of the container in `text` that launches SGLang; None when the text is no such list."""
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError):
        return None
    if isinstance(document, list):
        return [str(word) for word in document if not isinstance(word, dict | list)] or None
    candidates = _containers(document)
    launching = [words for words in candidates if any("sglang" in word for word in words)]
    with_flags = [words for words in candidates if any(word.startswith("--") for word in words)]
    return next(iter(launching or with_flags), None)


def _containers(document: Any) -> list[list[str]]:
    """Words of everything in the document that has `command:` or `args:`. Aliases are looked at once."""
    found: list[list[str]] = []
    waiting, seen = [document], set[int]()
    while waiting:
        node = waiting.pop(0)
        if id(node) in seen or not isinstance(node, dict | list):
            continue
        seen.add(id(node))
        if isinstance(node, dict) and ("command" in node or "args" in node):
            found.append([*_env(node.get("env")), *_strings(node.get("command")), *_strings(node.get("args"))])
        waiting += node.values() if isinstance(node, dict) else node
    return found


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return split_words(value)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _env(value: Any) -> list[str]:
    entries = value if isinstance(value, list) else []
    pairs = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("value"), str)]
    return [f"{entry.get('name')}={entry['value']}" for entry in pairs]
