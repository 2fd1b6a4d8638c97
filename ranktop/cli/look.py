"""Looking without a screen: samples over a window, judged."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import Sample, SampleFeed

_POLL_SECONDS = 0.1


def look(feed: SampleFeed, reconciler: Reconciler, window_seconds: float, patience_seconds: float) -> Verdict:
    """Two looks, `window_seconds` apart. The first waits until every source has said something, with patience.

    Between them every second is judged too, so that rates and trends have their samples. After the window the second
    metrics page is waited for as long again.
    """
    first = _until(feed, patience_seconds, all_answered)
    verdict = reconciler.update(first)
    began = first.at_monotonic_seconds
    while True:
        left = window_seconds - (time.monotonic() - began)
        if left <= 0:
            break
        time.sleep(min(1.0, left))
        verdict = reconciler.update(feed.sample())
    newest = {server: page.at_unix_seconds for server, page in first.metrics.items()}
    last = _until(feed, window_seconds, lambda sample: _has_newer_pages(sample, newest))
    return reconciler.update(last) if newest else verdict


def all_answered(sample: Sample) -> bool:
    """Every source has succeeded, failed, or said that it is not here; and servers were asked at all."""
    if sample.processes is None:
        return False
    asked = {state.server for state in sample.sources if state.server is not None}
    everyone = all(server.id in asked for server in sample.processes.servers if server.url is not None)
    return everyone and all(state.code != "waiting" for state in sample.sources)


def _has_newer_pages(sample: Sample, newest: dict[str, float]) -> bool:
    return all(sample.metrics[server].at_unix_seconds > at for server, at in newest.items() if server in sample.metrics)


def _until(feed: SampleFeed, patience_seconds: float, enough: Callable[[Sample], bool]) -> Sample:
    """The first sample that has enough, or the last in time. Events of the samples before it are not lost."""
    deadline = time.monotonic() + patience_seconds
    sample = feed.sample()
    while not enough(sample) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        following = feed.sample()
        sample = replace(following, events=sample.events + following.events)
    return sample
