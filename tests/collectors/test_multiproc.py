"""prometheus_client's mmap files, written by real processes of the real library, read past its HTTP server."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest, multiprocess

from collectors.exposition import ExpositionParser
from collectors.multiproc import MultiprocCollector, parse_file, read_folder
from ranktop.reconcile.families import SERIES_NAMES
from ranktop.sample import NoData, Processes, RankProcess, RankTag, SeriesKey, SourceError
from tests.collectors.soak import TIMES

WRITER = """
import os, sys
os.environ["PROMETHEUS_MULTIPROC_DIR"] = sys.argv[1]
rank = int(sys.argv[2])
from prometheus_client import Counter, Gauge, Histogram
Gauge("sglang:num_running_reqs", "h", ["tp_rank"], multiprocess_mode="mostrecent").labels(tp_rank=rank).set(rank + 1)
Counter("sglang:evicted_tokens_total", "h", ["cache_type"]).labels(cache_type="U").inc(100 * (rank + 1))
ttft = Histogram("sglang:time_to_first_token_seconds", "h", ["is_streaming"], buckets=(0.1, 1.0, 10.0))
for value in (0.05, 0.5, 0.6, 20.0):
    ttft.labels(is_streaming="true").observe(value)
Counter("not_ours", "h").inc()
print(os.getpid())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("multiproc")
    pids = [
        subprocess.run(
            [sys.executable, "-c", WRITER, str(path), str(rank)], capture_output=True, text=True, check=True
        ).stdout.strip()
        for rank in range(2)
    ]
    return path, pids


def test_every_process_keeps_its_own_values(folder: tuple[Path, list[str]]) -> None:
    path, pids = folder
    values, size = read_folder(path)
    evicted = [values[SeriesKey("sglang:evicted_tokens_total", (("cache_type", "U"), ("pid", pid)))] for pid in pids]
    assert evicted == [100, 200]
    assert size > 0
    assert not [key for key in values if "not_ours" in key.name]


def test_sums_over_processes_equal_the_merged_page(folder: tuple[Path, list[str]]) -> None:
    path, _ = folder
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, path=str(path))
    page = ExpositionParser(SERIES_NAMES).parse(generate_latest(registry).decode())
    merged = {
        SeriesKey(key.name, tuple(sorted(key.labels))): value for key, value in zip(page.keys, page.values, strict=True)
    }
    ours: dict[SeriesKey, float] = {}
    for key, value in read_folder(path)[0].items():
        bare = SeriesKey(key.name, tuple(sorted(pair for pair in key.labels if pair[0] != "pid")))
        ours[bare] = ours.get(bare, 0.0) + value
    assert ours == merged
    assert any(key.name.endswith("_count") for key in ours)


def test_damaged_files_end_early(folder: tuple[Path, list[str]]) -> None:
    path, pids = folder
    whole = (path / f"counter_{pids[0]}.db").read_bytes()
    assert len(list(parse_file(whole))) == 2
    chance = random.Random(3)
    for length in range(300):
        list(parse_file(whole[:length]))
    for _ in range(500 * TIMES):
        data = bytearray(whole[:400])
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        list(parse_file(bytes(data)))


def test_found_through_a_ranks_environment(tmp_path: Path, folder: tuple[Path, list[str]]) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "environ").write_bytes(b"A=b\0PROMETHEUS_MULTIPROC_DIR=/mp\0")
    (tmp_path / "42" / "root").mkdir()
    os.symlink(folder[0], tmp_path / "42" / "root" / "mp")
    rank = RankProcess(server="a:1", tag=RankTag(tp=0), pid=42, start_ticks=1, state="S")
    collector = MultiprocCollector("a:1", lambda: True, proc_root=str(tmp_path))
    assert collector.read(Processes(ranks=(rank,)), 5.0).points
    with pytest.raises(NoData) as caught:
        collector.read(Processes(), 5.0)
    assert caught.value.code == "no_folder"


def test_off_while_metrics_answer() -> None:
    with pytest.raises(NoData) as caught:
        MultiprocCollector("a:1", lambda: False).read(None, 5.0)
    assert caught.value.code == "not_needed"


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        read_folder(tmp_path / "none")
