"""Writes docs/licences.md: what is installed with ranktop, at the versions of the lock, and under which licences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"

_NOT_HERE = {"pyarrow": ("parquet", "Apache-2.0"), "numa": ("numa", "MIT")}
"""Extras that are not part of the environment for tests, by hand."""
_OLD_NAMES = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def page() -> str:
    """The whole page."""
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.M))
    rows = [f"| {name} | {pins[name]} | {needed} | {_licence(distribution(name))} |" for name, needed in _all()]
    rows += [f"| {name} | | extra `[{extra}]` | {licence} |" for name, (extra, licence) in _NOT_HERE.items()]
    return (
        "# Licences of what is installed with ranktop\n\n"
        "Made by `make licences` from the packages' own metadata; a test holds it against the lock. ranktop itself is\n"
        "Apache-2.0. What only its tests need is not listed.\n\n"
        "| package | locked version | needed by | licence |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _all() -> Iterator[tuple[str, str]]:
    """Packages and what they are needed by: the core's first."""
    core = _closure("ranktop", "")
    yield from ((name, "ranktop") for name in sorted(core))
    for extra in ("web", "zstd"):
        yield from ((name, f"extra `[{extra}]`") for name in sorted(_closure("ranktop", extra) - core))


def _closure(name: str, extra: str) -> set[str]:
    found: set[str] = set()
    waiting = [(name, extra)]
    while waiting:
        at, wanted = waiting.pop()
        for text in distribution(at).requires or ():
            needed = Requirement(text)
            # The oldest Python that is supported needs the most.
            where = {"extra": wanted, "python_version": "3.11", "python_full_version": "3.11.0"}
            normal = re.sub(r"[-_.]+", "-", needed.name).lower()
            if (needed.marker is None or needed.marker.evaluate(where)) and normal not in found:
                found.add(normal)
                waiting += [(normal, inner) for inner in ("", *needed.extras)]
    return found


def _licence(found: Distribution) -> str:
    told = found.metadata.get("License-Expression")
    if told is None:
        classified = [one for one in found.metadata.get_all("Classifier") or () if one.startswith("License ::")]
        told = (
            " and ".join(one.rpartition(" :: ")[2] for one in classified) or found.metadata.get("License") or "unknown"
        )
    told = " ".join(told.split())
    return _OLD_NAMES.get(told, told)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
