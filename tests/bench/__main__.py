"""`make bench`: every figure of design section 8 that this machine can measure, in one table and in docs/bench.json.

`python -m tests.bench [plan] [judge] [screen] [link]`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.bench import bench_judge, bench_link, bench_process, bench_screen
from tests.bench.rows import Row, table

PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "plan": bench_process.rows,
    "judge": bench_judge.rows,
    "screen": bench_screen.rows,
    "link": bench_link.rows,
}


def main(wanted: list[str]) -> None:
    """Measure the parts asked for, all by default; the file is only written when all were."""
    names = [name for name in PARTS if not wanted or name in wanted]
    found: list[Row] = []
    for name in names:
        print(f"measuring {name}", file=sys.stderr)
        found += list(PARTS[name]())
    print(table(found))
    if names == list(PARTS):
        path = Path(__file__).resolve().parents[2] / "docs" / "bench.json"
        path.write_text(json.dumps([msgspec.to_builtins(row) for row in found], indent=1) + "\n")


main(sys.argv[1:])
