"""Going back: what was shown comes back as it was, and a quarter of an hour of it stays small."""

from __future__ import annotations

import zlib

import msgspec
import pytest
from msgspec.structs import replace

from ranktop.finding import Finding
from ranktop.reconcile import Reconciler, Verdict
from support import samples
from support.samples import healthy
from tui.timeline import LiveTimeline


def _verdicts(count: int) -> list[Verdict]:
    reconciler = Reconciler()
    return [reconciler.update(healthy(float(second))) for second in range(count)]


def _slim(verdict: Verdict) -> Verdict:
    sample = verdict.sample
    assert sample.gpus is not None
    return replace(
        verdict, sample=replace(sample, metrics={}, mappings={}, infos={}, gpus=replace(sample.gpus, gpus=()))
    )


def test_every_moment_is_shown_as_it_was() -> None:
    verdicts, timeline = _verdicts(130), LiveTimeline(seconds=88)
    for verdict in verdicts:
        timeline.push(verdict)
    times = [verdict.sample.at_unix_seconds for verdict in verdicts]
    # In runs of two, of which only whole ones go.
    assert timeline.span() == (times[42], times[-1])
    for second in range(42, 130):
        assert timeline.at(times[second] + 0.5) == _slim(verdicts[second])
    assert timeline.at(0.0) == _slim(verdicts[42]), "before the first one"


def test_a_quarter_of_an_hour_is_small() -> None:
    verdicts, timeline = _verdicts(61), LiveTimeline()
    for verdict in verdicts:
        timeline.push(verdict)
    alone = sum(len(zlib.compress(msgspec.msgpack.encode(_slim(verdict)), 1)) for verdict in verdicts)
    assert timeline.kept_bytes < alone / 5


def test_many_ranks_go_back_less_far_instead_of_taking_more() -> None:
    (verdict,), one = _verdicts(1), LiveTimeline()
    one.push(verdict)
    most = one.kept_bytes * 5 // 2
    timeline = LiveTimeline(most_bytes=most)
    for second in range(190):
        timeline.push(replace(verdict, sample=replace(verdict.sample, at_unix_seconds=samples.START + second)))
    assert 0 < timeline.kept_bytes <= most
    span = timeline.span()
    assert span is not None
    assert (span[1] - samples.START, 0 < span[1] - span[0] < 189) == (189, True)


def _wide(second: int, ranks: int, *, loud: bool = False) -> Verdict:
    (verdict,) = _verdicts(1)
    finding = Finding("HOST-OOM-KILL", "critical", "killed")
    sample = replace(verdict.sample, at_unix_seconds=samples.START + second)
    findings = (finding,) if loud else ()
    return replace(verdict, sample=sample, ranks=verdict.ranks[:1] * ranks, findings=findings)


@pytest.mark.parametrize(("ranks", "every"), [(0, 1), (8, 1), (32, 1), (33, 2), (64, 2), (96, 3), (1024, 10)])
def test_of_many_ranks_not_every_second_is_kept(ranks: int, every: int) -> None:
    timeline = LiveTimeline(seconds=600)
    for second in range(41):
        timeline.push(_wide(second, ranks))
    shown = [timeline.at(samples.START + second) for second in range(40)]
    at = [verdict.sample.at_unix_seconds - samples.START for verdict in shown if verdict is not None]
    # Of its runs, whose first verdict is kept whole.
    begins = (0, 20, 40)
    assert at == [
        begin + (second - begin) // every * every
        for second in range(40)
        for begin in [max(first for first in begins if first <= second)]
    ]


def test_the_newest_second_and_the_first_of_a_breach_can_always_be_shown() -> None:
    timeline = LiveTimeline(seconds=600)
    for second in range(12):
        timeline.push(_wide(second, 64, loud=second >= 7))
    assert timeline.span() == (samples.START, samples.START + 11)
    for second, shown in ((11, 11), (20, 11), (7, 7), (9, 8), (6, 6), (5, 4)):
        verdict = timeline.at(samples.START + second)
        assert verdict is not None
        assert verdict.sample.at_unix_seconds == samples.START + shown, second
