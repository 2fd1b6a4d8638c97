"""The fast parser gives what prometheus_client's parser gives, and never fails."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from collectors.exposition import MAX_CACHED_KEYS, Exposition, ExpositionParser
from ranktop.reconcile.families import SERIES_NAMES
from ranktop.sample import SeriesKey
from tests.collectors.soak import TIMES

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "shared" / "samples").glob("*.prom"))


def by_library(text: str, wanted: frozenset[str]) -> dict[SeriesKey, float]:
    found: dict[SeriesKey, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.replace("sglang_", "sglang:", 1)
            if name in wanted and math.isfinite(sample.value):
                found[SeriesKey(name, tuple(sorted(sample.labels.items())))] = sample.value
    return found


def points(page: Exposition) -> tuple[tuple[SeriesKey, float], ...]:
    return tuple(zip(page.keys, page.values, strict=True))


def by_us(text: str, wanted: frozenset[str]) -> dict[SeriesKey, float]:
    page = ExpositionParser(wanted).parse(text)
    return {
        SeriesKey(key.name, tuple(sorted(key.labels))): value for key, value in zip(page.keys, page.values, strict=True)
    }


@pytest.mark.shared
@pytest.mark.parametrize("path", SAMPLES or [None], ids=lambda path: path.name if path else "none")
def test_equals_the_library(path: Path) -> None:
    # The library refuses `# EOF` of an OpenMetrics page; its samples are otherwise in the same form.
    text = path.read_text().replace("# EOF\n", "")
    assert by_us(text, SERIES_NAMES) == by_library(text, SERIES_NAMES)
    assert len(by_us(text, SERIES_NAMES)) > 100


@pytest.mark.shared
def test_equals_the_library_on_the_cases(shared: Path) -> None:
    for path in (shared / "cases" / "inputs").glob("*.prom"):
        text = path.read_text()
        assert by_us(text, SERIES_NAMES) == by_library(text, SERIES_NAMES), path.name


@pytest.mark.shared
def test_a_second_page_reads_the_same_through_the_cache(shared: Path) -> None:
    parser = ExpositionParser(SERIES_NAMES)
    text = (shared / "samples" / "0.5.18_tp8_default_rank0_scrape3.prom").read_text()
    first = parser.parse(text)
    assert parser.parse(text) == first
    assert first.bad_lines == 0
    assert 0 < first.wanted_families < first.families


WANTED = frozenset({"sglang:a_total", "sglang:b"})


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ('sglang:b{x="1"} 2', (("x", "1"),), 2.0),
        ('sglang_b{x="1"} 2', (("x", "1"),), 2.0),
        ("sglang:b 2.5e+09", (), 2.5e9),
        ("sglang:b{} 2", (), 2.0),
        ('sglang:b{x="1",} 2', (("x", "1"),), 2.0),
        ('sglang:b{x="1"} 2 1700000000000', (("x", "1"),), 2.0),
        ('sglang:b{x="a} b",y="c\\"d\\\\e\\nf"} 2', (("x", "a} b"), ("y", 'c"d\\e\nf')), 2.0),
        ('sglang:b{x="1",y=""} 2', (("x", "1"), ("y", "")), 2.0),
    ],
)
def test_forms_of_a_line(line: str, labels: tuple[tuple[str, str], ...], value: float) -> None:
    parser = ExpositionParser(WANTED)
    for _ in range(2):
        assert points(parser.parse(line + "\n")) == ((SeriesKey("sglang:b", labels), value),)


PAGE = """# TYPE sglang:b gauge
sglang:b{x="1"} 2
sglang:b{x="2"} NaN
# TYPE other counter
other{le="1"} 3
other{le="2"} 4
plain 5
sglang:a_total 6
"""


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("6\n", "7\n"),
        ("NaN", "8"),
        ("} 2", "} NaN"),
        ("} 2", "} 2 1700000000000"),
        ("} 2", "} x"),
        ('x="1"', 'x="3"'),
        ("plain 5", "plain 9"),
        ("plain 5", "sglang:a_total 9"),
        ('other{le="2"}', 'sglang:b{x="4"}'),
        ("sglang:b gauge", "sglang:bb gauge"),
        ("sglang:b gauge", "sglang:b gauges"),
        ("other counter", "others counter"),
        ("sglang:a_total 6\n", ""),
    ],
)
def test_a_page_like_the_one_before_is_read_as_if_it_were_the_first(was: str, now: str) -> None:
    parser, other = ExpositionParser(WANTED), PAGE.replace(was, now)
    for page in (PAGE, other, other, PAGE, PAGE):
        assert parser.parse(page) == ExpositionParser(WANTED).parse(page)


def test_of_pages_that_differ_the_beginnings_of_lines_are_kept_once() -> None:
    parser = ExpositionParser(WANTED)
    for page in (PAGE, PAGE + 'sglang:b{x="5"} 9\n'):
        parser.parse(page)
    cached = {prefix: id(prefix) for prefix in parser._keys}
    kept = [(begin, id(begin)) for begin in parser._layout.begins if begin in cached]
    assert len(kept) == 4
    assert kept == [(begin, cached[begin]) for begin, _ in kept]


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf", "9223372036854775794"])
def test_not_a_sample(number: str) -> None:
    page = ExpositionParser(WANTED).parse(f'sglang:b{{x="1"}} {number}\n')
    assert points(page) == ()
    assert page.bad_lines == 0


@pytest.mark.parametrize("line", ["sglang:b", "sglang:b{x=1} 2", 'sglang:b{x="1} 2', 'sglang:b{x="1"}', "sglang:b x"])
def test_a_broken_line_is_counted(line: str) -> None:
    page = ExpositionParser(WANTED).parse(line + "\n")
    assert (points(page), page.bad_lines) == ((), 1)


def test_the_cache_is_bounded() -> None:
    parser = ExpositionParser(WANTED)
    for start in range(0, 3 * MAX_CACHED_KEYS, MAX_CACHED_KEYS):
        parser.parse("".join(f'sglang:b{{x="{start + n}"}} 1\n' for n in range(MAX_CACHED_KEYS)))
    assert len(parser._keys) <= MAX_CACHED_KEYS


def test_a_page_larger_than_the_bound_is_learnt_once() -> None:
    """As of 1,024 ranks; and what no page has any more does not stay beside the next of its kind."""

    class Counting(ExpositionParser):
        learnt = 0

        def _learn(self, line: str, prefix: str) -> tuple[SeriesKey | None, str]:
            self.learnt += 1
            return super()._learn(line, prefix)

    lines = MAX_CACHED_KEYS + 10_000
    pages = ["".join(f'sglang:b{{x="{of}-{n}"}} 1\n' for n in range(lines)) for of in range(4)]
    parser = Counting(WANTED)
    for _ in range(3):
        parser.parse(pages[0])
    assert parser.learnt == lines
    for page in pages:
        parser.parse(page)
        assert len(parser._keys) <= 2 * lines


def test_a_long_line_is_left_out() -> None:
    page = ExpositionParser(WANTED).parse('sglang:b{x="' + "y" * 20_000 + '"} 1\n')
    assert (points(page), page.bad_lines) == ((), 1)


LINES = st.one_of(
    st.text(max_size=80),
    st.builds(
        lambda name, labels, value: f"{name}{{{labels}}} {value}",
        st.sampled_from(["sglang:b", "sglang_a_total", "sglang:c", " sglang:b", "# TYPE sglang:b"]),
        st.text(alphabet='ab="\\,{} \n', max_size=20),
        st.one_of(st.floats(), st.text(max_size=5)),
    ),
)


@settings(max_examples=300 * TIMES, deadline=None)
@given(st.lists(LINES, max_size=20))
def test_any_text_is_read(lines: list[str]) -> None:
    page = ExpositionParser(WANTED).parse("\n".join(lines))
    assert all(key.name in WANTED and math.isfinite(value) for key, value in points(page))


MUTATED = """# HELP sglang:b help {x="1"}
# TYPE sglang:b gauge
sglang:b{engine_type="unified",model_name="GLM-5.2-FP8",tp_rank="0"} 4.0
sglang:a_total{cache_source="device"} 7500.0
"""


def test_mutated_pages_are_read() -> None:
    chance = random.Random(5)
    parser = ExpositionParser(WANTED)
    for _ in range(500 * TIMES):
        page = list(MUTATED)
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(page))
            page[at] = chance.choice(["", "{", "}", '"', " ", "\n", "\\", chr(chance.randrange(0x2FF)), page[at] * 40])
        parser.parse("".join(page))


@pytest.mark.shared
def test_mutated_genuine_pages_are_read_in_bounded_time_and_space(shared: Path) -> None:
    whole = (shared / "samples" / "0.5.18_tp8_default_rank0_scrape3.prom").read_text()
    chance = random.Random(11)
    parser = ExpositionParser(SERIES_NAMES)
    for _ in range(20 * TIMES):
        page = list(whole)
        for _ in range(200):
            page[chance.randrange(len(page))] = chance.choice(["", "\n", "{", '"', "\\", "é", "\0", " "])
        found = parser.parse("".join(page)[: chance.randrange(len(page))])
        assert len(points(found)) < 2000
    assert len(parser._keys) <= MAX_CACHED_KEYS
