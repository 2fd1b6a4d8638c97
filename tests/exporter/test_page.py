"""A verdict as a page: what is on it, what is not, and that others can read it."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from ranktop.exporter.families import Point, points
from ranktop.exporter.metrics import FINDING, METRICS
from ranktop.exporter.page import Pages, render
from ranktop.finding import Finding
from ranktop.reconcile.verdict import Line, Verdict
from support import fleet, samples

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read_back(page: bytes) -> Values:
    """By the library that Prometheus's authors keep."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def expected(values: Iterable[Point]) -> Values:
    return {
        (
            point.metric.name,
            tuple(sorted((k, v) for k, v in zip(point.metric.labels, point.labels, strict=True) if v)),
        ): (point.value)
        for point in values
    }


def value(verdict: Verdict, name: str, **labels: str) -> float | None:
    return read_back(fleet.page(verdict)).get((name, tuple(sorted(labels.items()))))


def test_the_page_reads_back_as_it_was_written() -> None:
    values = list(points(fleet.troubled()))
    assert read_back(render(values)) == expected(values)
    assert len(values) == len(expected(values)), "no series twice"


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False)), max_size=5, unique_by=lambda pair: pair[0]))
def test_any_text_and_number_survive(pairs: list[tuple[str, float]]) -> None:
    values = [Point(FINDING, ("A-CODE", "warn", text, ""), number) for text, number in pairs]
    # Line ends other than \n are text to Prometheus; the library's parser splits there.
    if all(len(text.splitlines()) <= 1 for text, _ in pairs):
        assert read_back(render(values)) == expected(values)


def test_a_name_that_is_no_text_costs_only_its_letters() -> None:
    assert b'server="s?"' in render([Point(FINDING, ("A-CODE", "warn", "s\udcff", ""), 1.0)])


@pytest.mark.tools("promtool")
def test_promtool_finds_nothing_to_mend() -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=fleet.page(fleet.troubled()), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == b""


def test_planned_seen_difference_and_status_of_a_line() -> None:
    verdict = fleet.troubled()
    line = {"server": samples.SERVER, "rank": "TP3", "line": "host.primary"}
    assert value(verdict, "ranktop_rank_planned_bytes", **line) == 120_000_012_288
    assert value(verdict, "ranktop_rank_seen_bytes", **line) == 132_000_002_048
    assert value(verdict, "ranktop_rank_difference_bytes", **line) == 11_999_989_760
    assert value(verdict, "ranktop_rank_status", **line) == 1
    assert value(verdict, "ranktop_rank_status", **(line | {"rank": "TP2"})) == 0
    assert value(verdict, "ranktop_rank_seen_ratio", **(line | {"line": "numa.local"})) == 1.0


def test_what_was_not_seen_has_no_series() -> None:
    names = {dict(labels).get("line") for _, labels in read_back(fleet.page(fleet.healthy()))}
    assert "host.primary" in names
    assert "hbm.torch" not in names
    verdict = fleet.healthy()
    stale = replace(verdict.ranks[0], lines=(Line("l1.used", seen=5, unit="tokens", status="ok", stale=True),))
    line = {"server": samples.SERVER, "rank": "TP0", "line": "l1.used"}
    assert value(replace(verdict, ranks=(stale,)), "ranktop_rank_seen_tokens", **line) is None


def test_what_a_dead_rank_said_has_no_series() -> None:
    verdict = fleet.troubled()
    lines = (
        Line("host.primary", planned=8, seen=7, unit="bytes", status="under", source="logged"),
        Line("hbm.free", seen=9, unit="bytes", status="ok", source="measured"),
    )
    first, *others = verdict.ranks
    place = {"server": first.server, "rank": first.rank}
    for pid, seen in ((None, None), (4242, 7.0)):
        now = replace(verdict, ranks=(replace(first, pid=pid, lines=lines), *others))
        assert value(now, "ranktop_rank_seen_bytes", line="host.primary", **place) == seen
        assert value(now, "ranktop_rank_planned_bytes", line="host.primary", **place) == 8
        assert value(now, "ranktop_rank_seen_bytes", line="hbm.free", **place) == 9


def test_a_finding_has_a_series_a_rank_with_its_time() -> None:
    finding = Finding(
        "NUMA-REMOTE", "breach", "31 % far", server="s", ranks=("TP1", "TP2"), since="2026-11-29T14:03:27.120Z"
    )
    verdict = replace(fleet.healthy(), findings=(finding,))
    for rank in ("TP1", "TP2"):
        labels = {"code": "NUMA-REMOTE", "severity": "breach", "server": "s", "rank": rank}
        assert value(verdict, "ranktop_finding", **labels) == 1
        assert value(verdict, "ranktop_finding_since_timestamp_seconds", **labels) == pytest.approx(1795961007.12)
    assert value(verdict, "ranktop_severity") == 3
    assert b"31 % far" not in fleet.page(verdict)
    assert value(replace(verdict, findings=()), "ranktop_severity") == 0


def test_sources_that_fail_are_zero_and_those_that_are_not_here_absent() -> None:
    sample = samples.with_source(samples.healthy(), "nvml", "error", "timeout")
    sample = samples.with_source(sample, "pools", "no_data", "absent")
    verdict = replace(fleet.healthy(), sample=sample)
    assert value(verdict, "ranktop_source_up", source="nvml") == 0
    assert value(verdict, "ranktop_source_up", source="hostmem") == 1
    assert value(verdict, "ranktop_source_up", source="pools") is None


def test_names_end_in_their_unit_and_labels_are_few() -> None:
    units = ("_bytes", "_seconds", "_tokens", "_ratio", "_per_second", "_info")
    bare = {"ranktop_severity", "ranktop_finding", "ranktop_server_ready", "ranktop_source_up"}
    numbers = {
        f"ranktop_{scope}_{what}" for scope in ("rank", "node") for what in ("seen", "planned", "difference", "status")
    }
    for metric in METRICS:
        assert metric.name.endswith(units) or metric.name in bare | numbers | {"ranktop_service_requests"}
        assert len(metric.labels) <= 11
        assert not {"message", "detail", "advice", "why"} & set(metric.labels)


def test_a_sample_is_rendered_once_and_only_when_asked() -> None:
    pages = Pages()
    assert pages.get() is None
    pages.put(fleet.healthy())
    first = pages.get()
    assert first is pages.get()
    assert pages.get(compressed=True) is pages.get(compressed=True)
    pages.put(fleet.troubled())
    assert pages.get() is not first


def test_eight_ranks_fit_in_sixty_kilobytes() -> None:
    assert len(fleet.page(fleet.troubled())) < 60_000
    assert not any(math.isnan(point.value) for point in points(fleet.troubled()))
