"""History out of Prometheus as a recording."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from collectors.prometheus import Access, Prometheus
from ranktop.cli.errors import NothingToLookAt
from ranktop.cli.history import record_history
from ranktop.fleet.history import pages
from ranktop.fleet.source import Track
from ranktop.reconcile import Reconciler
from ranktop.recording.reader import Recording
from ranktop.sample import SeriesKey
from support.prometheus import answered, prometheus, target
from support.prometheus import pages as serving


def test_tracks_become_pages_in_the_order_of_time() -> None:
    labels = {"instance": "a:1", "job": "j", "tp_rank": "0"}
    tracks = [
        Track({"__name__": "sglang_num_running_reqs", **labels}, ((10.0, 1.0), (25.0, 2.0))),
        Track({"__name__": "sglang:num_queue_reqs", **labels}, ((25.0, 3.0),)),
        Track({"__name__": "sglang:nobody_reads_this", **labels}, ((25.0, 4.0),)),
    ]
    early, late = pages(tracks, "a:1")
    own = (("tp_rank", "0"),)
    assert early.points == ((SeriesKey("sglang:num_running_reqs", own), 1.0),)
    assert late.at_unix_seconds == 25.0
    assert late.points == (
        (SeriesKey("sglang:num_running_reqs", own), 2.0),
        (SeriesKey("sglang:num_queue_reqs", own), 3.0),
    )


@pytest.mark.tools("prometheus")
@pytest.mark.xdist_group("prometheus")
def test_a_recording_of_what_prometheus_kept(tmp_path: Path) -> None:
    path = tmp_path / "night.rtop"
    rank = 'tp_rank="0",pp_rank="0"'
    text = f"sglang:num_running_reqs{{{rank}}} 7\nsglang:max_total_num_tokens{{{rank}}} 432000\n".encode()
    with serving(lambda _: text) as address, prometheus(tmp_path, [target(address, "a:30000")]) as url:
        answered(Prometheus(Access(url)), '{__name__=~"sglang[:_]num_running_reqs"}')
        time.sleep(3)
        arguments = {"start": "-30s", "step_seconds": 1.0}
        with pytest.raises(NothingToLookAt, match="no sglang series"):
            record_history(url, "b:30000", str(path), Reconciler(), **arguments)  # type: ignore[arg-type]
        assert not path.exists()
        assert record_history(url, "a:30000", str(path), Reconciler(), **arguments) == 0  # type: ignore[arg-type]
    with Recording(str(path)) as recording:
        samples = [recorded.sample for recorded in recording.samples()]
    assert len(samples) >= 3
    verdict = Reconciler().update(samples[-1])
    assert verdict.servers[0].service.running == 7
    assert verdict.ranks[0].line("l1.tokens").seen == 432_000
    assert verdict.ranks[0].line("host.primary").status == "unknown"


def test_a_server_that_is_away(tmp_path: Path) -> None:
    with pytest.raises(NothingToLookAt, match=r"refused|unreachable"):
        record_history("http://127.0.0.1:9", "a", str(tmp_path / "a.rtop"), Reconciler(), start="-1m")
