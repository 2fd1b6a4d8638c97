"""The demo's page against genuine pages of SGLang 0.5.18: it may show less, but nothing that is not there."""

from __future__ import annotations

import re
import struct
import threading
import time
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from ranktop.demo.exposition import SCHEDULER_FAMILIES, TOKENIZER_FAMILIES, render, scheduler_families
from ranktop.demo.launcher import DemoNode
from ranktop.demo.sizes import pool_sizes

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("demo0")]

_LINE = re.compile(r"^([^{ ]+)(?:\{(.*)\})? (\S+)$")
# A real server has it; the samples' driver has no HTTP layer (samples/README.md).
WITHOUT_SAMPLE = {"sglang:http_requests_active": ("gauge", frozenset({"endpoint", "method"}))}


class Page(NamedTuple):
    types: dict[str, str]
    labels: dict[str, set[frozenset[str]]]
    bounds: dict[str, set[str]]
    values: dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _page(text: str) -> Page:
    page = Page({}, defaultdict(set), defaultdict(set), {})
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            page.types[name] = kind
        elif not line.startswith("#"):
            match = _LINE.match(line)
            assert match is not None, line
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
            page.values[match[1], tuple(sorted(labels.items()))] = float(match[3])
            family = match[1] if match[1] in page.types else re.sub("_(bucket|sum|count)$", "", match[1])
            if match[1].endswith("_bucket"):
                page.bounds[family].add(labels.pop("le"))
            page.labels[family].add(frozenset(labels))
    return page


@pytest.fixture(scope="module")
def demo(node: DemoNode) -> Page:
    """A page on which every rank has written: on a slow machine some do so later than others."""
    ends = time.monotonic() + 30
    while True:
        page = _fetched(node)
        if len(_pids(page)) == 8 or time.monotonic() > ends:
            return page
        time.sleep(0.2)


def _pids(page: Page) -> set[str | None]:
    return {dict(labels).get("pid") for name, labels in page.values if name == "sglang:num_retracted_reqs"}


def _fetched(node: DemoNode) -> Page:
    with urllib.request.urlopen(node.url + "/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return _page(answer.read().decode())


@pytest.fixture
def genuine(shared: Path) -> Page:
    return _page((shared / "samples" / "0.5.18_tp8_allsched_hicache_l2l3_scrape3.prom").read_text())


@pytest.mark.shared
def test_every_family_type_and_label_set_is_genuine(demo: Page, genuine: Page) -> None:
    known = genuine.types | {name: kind for name, (kind, _) in WITHOUT_SAMPLE.items()}
    assert {name: known.get(name) for name in demo.types} == demo.types
    labels = genuine.labels | {name: {labels} for name, (_, labels) in WITHOUT_SAMPLE.items()}
    assert {name: sets - labels[name] for name, sets in demo.labels.items() if sets - labels[name]} == {}


@pytest.mark.shared
def test_histograms_have_the_genuine_buckets(demo: Page, genuine: Page) -> None:
    assert demo.bounds
    assert {name: genuine.bounds[name] for name in demo.bounds} == demo.bounds


def test_nothing_is_declared_that_never_shows(demo: Page) -> None:
    shown = {name.removeprefix("sglang:") for name in demo.types}
    declared = set(SCHEDULER_FAMILIES) | set(TOKENIZER_FAMILIES)
    assert shown <= declared
    # No draft model here, and nothing has to be dropped.
    assert declared - shown <= {"hicache_dropped_tokens_total", "spec_verify_calls_total"}


def test_bytes_are_tokens_times_bytes_a_token(demo: Page) -> None:
    cache = ("cache_type", "UnifiedRadixCache")
    for moved in ("hicache_backup", "load_back"):
        tokens = demo.values[f"sglang:{moved}_tokens_total", (cache, ("pool", "kv"))]
        assert tokens > 0
        assert demo.values[f"sglang:{moved}_bytes_total", (cache,)] == tokens * pool_sizes().bytes_per_token


def test_radix_tokens_are_the_sum_over_ranks(demo: Page) -> None:
    cache = ("cache_type", "UnifiedRadixCache")
    loaded = demo.values["sglang:load_back_tokens_total", (cache, ("pool", "kv"))]
    hits = {
        dict(labels)["tp_rank"]: value
        for (name, labels), value in demo.values.items()
        if name == "sglang:prefill_effective_tokens_total" and ("mode", "host_hit") in labels
    }
    assert len(hits) == 8
    # Ranks are told one after another, so that a page may catch some of them a step behind.
    assert loaded == pytest.approx(sum(hits.values()), rel=0.2)


def test_gauges_that_have_no_mode_carry_the_pid_of_their_rank(demo: Page, node: DemoNode) -> None:
    pids = _pids(demo)
    assert len(pids) == 8
    assert None not in pids
    assert str(node.pid) not in pids


def test_a_file_that_is_being_created_is_waited_for(tmp_path: Path) -> None:
    young = tmp_path / "counter_1.db"
    young.touch()
    threading.Timer(0.05, lambda: young.write_bytes(struct.pack("ii", 8, 0))).start()
    assert render(str(tmp_path)) == b""


@pytest.mark.shared
def test_radix_series_of_0_5_23_carry_their_rank(shared: Path) -> None:
    page = _page((shared / "samples" / "0.5.23_tp8_allsched_hicache_l2l3_scrape3.prom").read_text())
    own_labels = {"model_name", "engine_type", "tp_rank", "pp_rank", "moe_ep_rank"}
    for name, family in scheduler_families("0.5.23").items():
        if family.common[0] == "cache_type":
            assert page.labels[f"sglang:{name}"] == {frozenset((*family.common, *family.extra))}
            assert not family.buckets or len(page.bounds[f"sglang:{name}"]) == len(family.buckets) + 1
        else:
            assert set(family.common) == own_labels
