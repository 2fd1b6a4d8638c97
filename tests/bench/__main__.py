"""`make bench`: every figure of design section 8 that this machine can measure, in one table and in docs/bench.json.

`python -m tests.bench [PART...]`; the parts are those of PARTS, all of them without any.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.bench.rows import Row, document, table

PARTS = ("screen", "link", "plan", "judge", "render", "collectors", "page", "log", "recording", "fleet", "stall")
"""Each is a module `bench_PART` with `rows()`."""


def main(wanted: list[str]) -> None:
    """Measure the parts asked for, all by default; the file is only written when all were."""
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.exit(f"tests.bench: no part {unknown[0]!r} (one of {', '.join(PARTS)})")
    found: list[Row] = []
    try:
        for name in [name for name in PARTS if not wanted or name in wanted]:
            started = time.monotonic()
            print(f"measuring {name}", end=" ", file=sys.stderr, flush=True)
            found += importlib.import_module(f"tests.bench.bench_{name}").rows()
            print(f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    finally:
        # A part that breaks takes nothing of the others with it but the file.
        print(table(found))
    if not wanted:
        path = Path(__file__).resolve().parents[2] / "docs" / "bench.json"
        path.write_text(json.dumps(document(found), indent=1) + "\n")


main(sys.argv[1:])
