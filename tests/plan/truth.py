"""Figures that SGLang's real pool classes produced, release by release; tests/data/truth/README.md says from where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRUTH = Path(__file__).resolve().parent.parent / "data" / "truth"

_NOT_FIGURES = """
log primary_dims indexer_dims cuda_host_registered primary_bytes_allocated pools message type owner meta features
combined_GB combined_GiB combined_bytes_seed_convention indexer_page_num indexer_page_stride version
row_matches_device indexer_bytes_per_token primary_bytes_per_token device_draft_row_bytes draft_page_num
"""
_DROPPED = frozenset(_NOT_FIGURES.split())


def figures(node: Any) -> Any:
    """`node` with numbers, truth values and the names of what a version lacks; everything else dropped."""
    if isinstance(node, dict):
        kept = {key: figures(value) for key, value in node.items() if key not in _DROPPED}
        return {key: value for key, value in kept.items() if value is not None}
    if isinstance(node, list):
        return [figures(item) for item in node]
    if isinstance(node, str):
        return "absent" if node.startswith("absent") else None
    return node


def merged(documents: dict[str, Any]) -> dict[str, Any]:
    """section -> entry -> {"versions that agree": figures}."""
    result: dict[str, Any] = {}
    for version, document in documents.items():
        for section, entries in figures(document).items():
            for entry, value in entries.items() if isinstance(entries, dict) else (("", entries),):
                shared = result.setdefault(section, {}).setdefault(entry, [])
                same = next((item for item in shared if item[1] == value), None)
                if same is None:
                    shared.append([[version], value])
                else:
                    same[0].append(version)
    return {
        section: {entry: {" ".join(versions): value for versions, value in shared} for entry, shared in entries.items()}
        for section, entries in result.items()
    }


def load(name: str) -> dict[str, Any]:
    """The merged figures of `name`."""
    return json.loads((TRUTH / name).read_text())


def entries(document: dict[str, Any], section: str) -> list[tuple[str, str, Any]]:
    """(version, entry, figures) of one section, without what the version lacks."""
    return [
        (version, entry, value)
        for entry, by_versions in document.get(section, {}).items()
        for versions, value in by_versions.items()
        for version in versions.split()
        if value != "absent" and not (isinstance(value, dict) and value.get("absent"))
    ]


def versions(document: dict[str, Any]) -> set[str]:
    """Every version that the figures speak of."""
    return {
        version
        for section in document.values()
        for by_versions in section.values()
        for names in by_versions
        for version in names.split()
    }
