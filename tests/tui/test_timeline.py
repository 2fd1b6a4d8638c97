"""Going back: what was shown comes back as it was, and a quarter of an hour of it stays small."""

from __future__ import annotations

import zlib
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ranktop.reconcile import Reconciler, Verdict
from support.samples import healthy
from tui.packed import packed, unpacked
from tui.timeline import LiveTimeline

TEXTS = st.tuples(st.integers(0, 1 << 32), st.integers(0, 100_000)).map(lambda two: Random(two[0]).randbytes(two[1]))


@settings(deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 300))
def test_what_is_packed_comes_back(text: bytes, like: bytes, moved: int) -> None:
    assert unpacked(packed(text, like), like) == text
    assert unpacked(packed(text[moved:], text), text) == text[moved:]


def test_another_text_to_look_at_is_refused() -> None:
    with pytest.raises(zlib.error):
        unpacked(packed(b"verdict" * 9000, b"one" * 9000), b"another" * 9000)


def _verdicts(count: int) -> list[Verdict]:
    reconciler = Reconciler()
    return [reconciler.update(healthy(float(second))) for second in range(count)]


def _slim(verdict: Verdict) -> Verdict:
    return replace(verdict, sample=replace(verdict.sample, metrics={}, mappings={}, infos={}))


def test_every_moment_is_shown_as_it_was() -> None:
    verdicts, timeline = _verdicts(130), LiveTimeline(seconds=100)
    for verdict in verdicts:
        timeline.push(verdict)
    times = [verdict.sample.at_unix_seconds for verdict in verdicts]
    assert timeline.span() == (times[30], times[-1])
    for second in (30, 59, 60, 61, 119, 120, 129):
        assert timeline.at(times[second] + 0.5) == _slim(verdicts[second])
    assert timeline.at(0.0) == _slim(verdicts[30]), "before the first one"


def test_a_quarter_of_an_hour_is_small() -> None:
    verdicts, timeline = _verdicts(61), LiveTimeline()
    for verdict in verdicts:
        timeline.push(verdict)
    alone = sum(len(zlib.compress(msgspec.msgpack.encode(_slim(verdict)), 1)) for verdict in verdicts)
    kept = sum(map(len, {one.first for one in timeline._kept})) + sum(len(one.data) for one in timeline._kept)
    assert kept < alone / 3


def test_many_ranks_go_back_less_far_instead_of_taking_more() -> None:
    (verdict,), one = _verdicts(1), LiveTimeline()
    one.push(verdict)
    most = one.kept_bytes * 5 // 2
    timeline = LiveTimeline(most_bytes=most)
    for _ in range(190):
        timeline.push(verdict)
    firsts = {id(kept.first): len(kept.first) for kept in timeline._kept}
    assert timeline.kept_bytes == sum(firsts.values()) + sum(len(kept.data) for kept in timeline._kept)
    assert 0 < timeline.kept_bytes <= most
    assert len(timeline._kept) < 190
