"""Deaths that a recording shows, and who grew before them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler
from ranktop.recording.writer import Writer
from ranktop.sample import Event, Sample
from ranktop.why.gather import gather
from support import changes
from support.samples import MAIN_PID, SERVER, START, healthy, pid_of, without_rank
from why.node import claim, judged, nowhere, only_death, proc, recording


def growing(second: float, tp: int, gb_per_second: float) -> Sample:
    """The rank's own memory grows, and MemAvailable falls by as much."""
    sample = healthy(second)
    assert sample.processes is not None
    assert sample.host is not None
    assert sample.host.available_bytes is not None
    grown = round(second * gb_per_second * 1e9)
    ranks = tuple(
        replace(rank, rss_anon_bytes=rank.rss_anon_bytes + grown) if rank.tag.tp == tp else rank
        for rank in sample.processes.ranks
        if rank.rss_anon_bytes is not None
    )
    host = replace(sample.host, available_bytes=sample.host.available_bytes - grown)
    return replace(sample, processes=replace(sample.processes, ranks=ranks), host=host)


def killed(second: float, tp: int) -> Event:
    fields = {"pid": pid_of(tp), "comm": "sglang::schedul", "memcg": False, "constraint": "CONSTRAINT_NONE"}
    return Event(START + second, "oom_kill", "Out of memory: Killed process", fields=fields)


def test_case_16_who_grew_is_not_who_was_killed(tmp_path: Path) -> None:
    """TP5's own memory grew by 118 GB in two minutes; the kernel took TP2, the largest of near-equals."""
    samples = [growing(second, 5, 1.0) for second in range(180)]
    end = replace(without_rank(growing(180, 5, 1.0), 2), events=(killed(180, 2),))
    path = recording(tmp_path / "a.rtop", [*samples, end])
    death = only_death(judged(replace(nowhere(tmp_path), recordings=(path,))))
    assert (death.cause, death.rank, death.pids) == ("out of memory", "TP2", (pid_of(2),))
    assert claim(death, "constraint").text == "the host's memory"
    grew = claim(death, "grew_last")
    assert (grew.text.split()[0], grew.certainty) == ("TP5", "likely")
    assert 110e9 < grew.evidence["growth_bytes"] < 122e9
    planned = claim(death, "planned")
    assert planned.text.startswith("8 ranks x 144.15 GB = 1153.18 GB")


def test_small_growth_explains_nothing(tmp_path: Path) -> None:
    """Others took the memory: 0.1 GB of the rank's own against 60 GB that went."""
    samples = []
    for second in range(120):
        sample = growing(second, 5, 0.001)
        assert sample.host is not None
        assert sample.host.available_bytes is not None
        left = sample.host.available_bytes - second * 500_000_000
        samples.append(replace(sample, host=replace(sample.host, available_bytes=left)))
    end = replace(without_rank(samples[-1], 2), events=(killed(119, 2),))
    path = recording(tmp_path / "a.rtop", [*samples[:-1], end])
    grew = claim(only_death(judged(replace(nowhere(tmp_path), recordings=(path,)))), "grew_last")
    assert (grew.certainty, "no rank grew enough" in grew.text) == ("unknown", True)


def test_minutes_after_the_death_say_nothing_of_who_grew(tmp_path: Path) -> None:
    """A recording that was begun after it: its kernel log told of the kill once more."""
    samples = [without_rank(growing(second, 5, 1.0), 2) for second in range(180)]
    samples[0] = replace(samples[0], events=(killed(-60, 2),))
    path = recording(tmp_path / "a.rtop", samples)
    grew = claim(only_death(judged(replace(nowhere(tmp_path), recordings=(path,)))), "grew_last")
    assert (grew.certainty, grew.text.split(";")[0]) == (
        "unknown",
        "not recorded: the recording begins after the death",
    )


def test_the_limit_of_a_cgroup_that_is_gone_is_in_the_recording(tmp_path: Path) -> None:
    fields = {"memcg": True, "constraint": "CONSTRAINT_MEMCG", "oom_memcg": changes.POD}
    kill = killed(9, 2)
    samples = [changes.cgroup(healthy(second)) for second in range(10)]
    end = replace(changes.cgroup(without_rank(healthy(10), 2)), events=(replace(kill, fields=kill.fields | fields),))
    path = recording(tmp_path / "a.rtop", [*samples, end])
    limit = claim(only_death(judged(replace(nowhere(tmp_path), recordings=(path,)))), "limit")
    assert (limit.certainty, limit.evidence) == ("likely", {"limit_bytes": 1300 * 10**9})


def test_a_rank_that_vanishes_without_a_word(tmp_path: Path) -> None:
    path = recording(tmp_path / "a.rtop", [*map(healthy, range(10)), without_rank(healthy(10), 3)])
    death = only_death(judged(replace(nowhere(tmp_path), recordings=(path,))))
    assert (death.title, death.pids, death.at_unix_seconds) == ("TP3 vanished", (pid_of(3),), START + 10)


def test_what_the_log_said_before_a_rank_vanished(tmp_path: Path) -> None:
    error = Event(START + 9, "traceback", "RuntimeError: CUDA error", SERVER, "TP3")
    told = replace(healthy(9), events=(error,))
    path = recording(tmp_path / "a.rtop", [*map(healthy, range(9)), told, without_rank(healthy(10), 3)])
    root = claim(only_death(judged(replace(nowhere(tmp_path), recordings=(path,)))), "root")
    assert (root.certainty, "CUDA error" in root.text) == ("likely", True)


def test_a_server_that_was_told_to_stop_is_no_death(tmp_path: Path) -> None:
    term = Event(START + 9, "signal", "SIGTERM received", fields={"signal": "SIGTERM"})
    told = replace(healthy(9), events=(term,))
    path = recording(tmp_path / "a.rtop", [*map(healthy, range(9)), told, without_rank(healthy(10), 3)])
    assert judged(replace(nowhere(tmp_path), recordings=(path,))).deaths == ()


def test_a_death_long_before_the_end_is_found(tmp_path: Path) -> None:
    """The recorder went on for twenty minutes, with the server started again."""
    reconciler = Reconciler()
    writer = Writer(str(tmp_path / "a.rtop"), {})
    for second in [*range(60), *range(60, 1300, 10)]:
        sample = without_rank(healthy(second), 3) if second == 60 else healthy(second)
        writer.append(sample, reconciler.update(sample))
    writer.close()
    found = judged(replace(nowhere(tmp_path), recordings=(str(tmp_path / "a.rtop"),)))
    assert only_death(found).pids == (pid_of(3),)


def test_a_healthy_recording_has_no_death(tmp_path: Path) -> None:
    path = recording(tmp_path / "a.rtop", map(healthy, range(10)))
    assert judged(replace(nowhere(tmp_path), recordings=(path,))).deaths == ()


def test_case_85_ranks_that_outlived_their_server(tmp_path: Path) -> None:
    """A scheduler whose parent is 1: its main process died, and it still holds its pool."""
    proc(tmp_path / "proc", (1, 0, "init"), (pid_of(0), 1, "sglang::scheduler_TP0"))
    death = only_death(judged(replace(nowhere(tmp_path), proc_root=str(tmp_path / "proc"))))
    assert death.cause == "server gone"
    assert claim(death, "after").evidence == {"pids": [pid_of(0)], "rss_shmem_bytes": 140771499 * 1024}


def test_a_rank_under_its_server_is_no_death(tmp_path: Path) -> None:
    main = "python -m sglang.launch_server --model-path m --port 30000"
    processes = (1, 0, "init"), (MAIN_PID, 1, main), (pid_of(0), MAIN_PID, "sglang::scheduler_TP0")
    proc(tmp_path / "proc", *processes)
    (tmp_path / "proc" / str(MAIN_PID) / "cmdline").write_bytes(main.replace(" ", "\0").encode() + b"\0")
    assert judged(replace(nowhere(tmp_path), proc_root=str(tmp_path / "proc"))).deaths == ()


@pytest.mark.parametrize(("count", "told"), [(1, "1 kill since boot"), (2, "2 kills since boot")])
def test_one_kill_is_no_kills(tmp_path: Path, count: int, told: str) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\n")
    (tmp_path / "vmstat").write_text(f"nr_free_pages 1000\noom_kill {count}\n")
    readings = gather(replace(nowhere(tmp_path), proc_root=str(tmp_path)), 0.0, 1.0).readings
    assert any(reading.detail.startswith(told) for reading in readings)
