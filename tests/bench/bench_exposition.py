"""Cost of one metrics page, warm and cold: `python tests/bench/bench_exposition.py [PAGE...]`.

Without pages: a page of 1.25 MB with the families of an 8-rank server.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from collectors.exposition import ExpositionParser
from ranktop.reconcile.families import FAMILIES, SERIES_NAMES

ROUNDS = 30
BIG_PAGE_BYTES = 1_250_000


def big_page() -> str:
    """About 1.25 MB: 8 ranks of every family that is read, and buckets of families that are not, as SGLang has them."""
    labels = 'engine_type="unified",model_name="GLM-5.2-FP8",moe_ep_rank="0",pp_rank="0"'
    wanted = [
        f'{name}{{{labels},tp_rank="{rank}"}} {rank + 1}.0'
        for family in FAMILIES.values()
        for name in family.series_names
        for rank in range(8)
    ]
    other, size = [], sum(map(len, wanted))
    while size < BIG_PAGE_BYTES:
        line = f'sglang:queue_time_seconds_bucket{{{labels},le="{len(other)}",tp_rank="{len(other) % 8}"}} 24.0'
        other.append(line)
        size += len(line) + 1
    return "\n".join([*wanted, *other]) + "\n"


def measure(title: str, text: str) -> None:
    """Print the cold and the median and best warm time of one page."""
    parser = ExpositionParser(SERIES_NAMES)
    took = []
    for _ in range(ROUNDS):
        started = time.process_time()
        page = parser.parse(text)
        took.append((time.process_time() - started) * 1e3)
    cold, *warm = took
    print(
        f"{title}: {len(text) / 1e6:.2f} MB, {len(page.points)} points, cold {cold:.1f} ms, "
        f"warm median {statistics.median(warm):.2f} ms, best {min(warm):.2f} ms"
    )


if __name__ == "__main__":
    measure("1.25 MB page", big_page())
    for name in sys.argv[1:]:
        measure(Path(name).name, Path(name).read_text())
