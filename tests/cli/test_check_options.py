"""What `check` is asked for, and its faces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from ranktop.cli.check import check
from ranktop.cli.check_markdown import check_markdown
from ranktop.cli.check_options import codes_of, fails, only, with_manifest
from ranktop.cli.check_text import check_text
from ranktop.cli.errors import UsageProblem
from ranktop.cli.launch_history import remember, remembered
from ranktop.cli.node_options import NodeOptions
from ranktop.cli.wait_ready import wait_ready
from ranktop.finding import Finding
from ranktop.plan.manifest import manifest_of, manifest_yaml
from ranktop.reconcile import Reconciler, Verdict
from ranktop.reconcile.launches import Launch
from ranktop.sample import Processes, RankTag, Sample
from support.command import ranktop
from support.feed import StoryFeed
from support.http_answers import answering
from support.samples import LAUNCH, SERVER, healthy, pid_of, plan, with_pool, with_source, without_rank

OTHER = "127.0.0.1:31000"


def judged(*samples: Sample) -> Verdict:
    reconciler = Reconciler()
    return [reconciler.update(sample) for sample in samples][-1]


def hurt(second: float) -> Sample:
    """TP3 holds too much, TP5 is gone, two sources fail."""
    sample = with_source(with_pool(healthy(second), 3, 126 * 10**9), "metrics", "error", "timeout", "no answer in 5 s")
    return without_rank(with_source(sample, "nvml", "error", "version_mismatch", "Driver/library version mismatch"), 5)


def two_servers(second: float) -> Sample:
    """A second server whose ranks have long tags."""
    sample = healthy(second)
    assert sample.processes is not None
    ranks = tuple(
        replace(rank, server=OTHER, pid=rank.pid + 1000, tag=RankTag(dp=0, pp=0, cp=tp % 4, tp=tp, ep=1))
        for tp, rank in enumerate(sample.processes.ranks)
    )
    main = replace(sample.processes.servers[0], id=OTHER, pid=5200, url=f"http://{OTHER}")
    return replace(sample, processes=Processes((*sample.processes.servers, main), (*sample.processes.ranks, *ranks)))


@pytest.mark.parametrize(
    ("samples", "shown"),
    [
        pytest.param([healthy(0), healthy(1)], ["within plan since", "120.00/120.00"], id="no finding"),
        pytest.param([healthy(0), with_pool(healthy(1), 3, 126 * 10**9, 24147002880)], ["126.00/120.00"], id="one"),
        pytest.param([healthy(0), hurt(1)], ["critical RANK-DEAD  TP5", "breach   HOST-POOL-OVER  TP3"], id="many"),
        pytest.param([two_servers(0), two_servers(1)], [SERVER, OTHER, "DP0 PP0 ATTN_CP3 TP7 EP1"], id="several"),
    ],
)
def test_the_text_fits_80_columns(samples: Sequence[Sample], shown: list[str]) -> None:
    text = check_text(judged(*samples))
    for words in shown:
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_rank_that_is_gone_holds_no_pool() -> None:
    verdict = judged(healthy(0), without_rank(healthy(1), 5))
    told = replace(verdict.ranks[5].line("host.primary"), seen=120 * 10**9, source="logged")
    ranks = [*verdict.ranks]
    ranks[5] = replace(ranks[5], lines=(told,))
    lines = check_text(replace(verdict, ranks=tuple(ranks))).splitlines()
    assert next(line for line in lines if line.startswith("  TP5")).split()[:4] == ["TP5", "-", "5", "-/120.00"]


def test_an_effect_stands_under_its_root() -> None:
    lines = check_text(judged(healthy(0), hurt(1))).splitlines()
    root = next(number for number, line in enumerate(lines) if line.startswith("critical RANK-DEAD"))
    assert any(line.startswith("  warn     METRICS-TIMEOUT") for line in lines[root:])


def test_the_same_advice_is_told_once() -> None:
    drift = [Finding("LAUNCH-DRIFT", "breach", f"option {number} differs", advice="correct it") for number in (1, 2, 3)]
    verdict = replace(judged(healthy(0)), findings=tuple(drift))
    assert check_text(verdict).count("correct it") == 1
    assert check_markdown(verdict).count("correct it") == 1


def test_markdown_has_all_findings_and_no_markup_of_others() -> None:
    verdict = judged(healthy(0), hurt(1))
    evil = Finding("RANK-DEAD", "critical", "a | b <img src=x> [x](http://y)\n# z", advice="`c`")
    text = check_markdown(replace(verdict, findings=(*verdict.findings, evil)))
    assert text.count("| `HOST-POOL-OVER` |") == 1
    assert r"a \| b \<img src=x\> \[x\](http://y) \# z" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {row.replace(r"\|", "").count("|") for row in rows} == {6, 7}


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        ((), None),
        (("hbm-over",), {"HBM-OVER"}),
        (("HBM-OVER, L2-WHY", "GPU-LOST"), {"HBM-OVER", "L2-WHY", "GPU-LOST"}),
        (("gpu-*",), {"GPU-LOST", "GPU-XID", "GPU-ECC"}),
    ],
)
def test_codes_of_only(words: tuple[str, ...], codes: set[str] | None) -> None:
    assert codes_of(words) == codes


@pytest.mark.parametrize("word", ["HBM-OVR", "FOO-*"])
def test_a_code_that_is_none(word: str) -> None:
    with pytest.raises(UsageProblem, match=r"^(check: --only: 'HBM-OVR' is no|--only FOO-\*: no code)"):
        codes_of((word,))


def test_only_decides_what_is_shown_and_what_fails() -> None:
    verdict = judged(healthy(0), hurt(1))
    kept = only(verdict, frozenset({"NVML-BROKEN"}))
    assert [finding.code for finding in kept.findings] == ["NVML-BROKEN"]
    assert not fails(kept.findings, "breach")
    assert fails(kept.findings, "warn")


@pytest.mark.parametrize(
    ("severity", "fail_on", "fails_then"),
    [("info", "info", True), ("info", "warn", False), ("breach", "critical", False), ("critical", "breach", True)],
)
def test_fail_on(severity: str, fail_on: str, fails_then: bool) -> None:
    assert fails((Finding("L2-WHY", severity, ""),), fail_on) is fails_then  # type: ignore[arg-type]


def test_manifest(tmp_path: Path) -> None:
    """Every difference is a breach, strict: what the server does not report is one too."""
    from ranktop.plan import parse_launch

    wanted = manifest_of(parse_launch(LAUNCH), plan())
    wanted["cache"]["page_size"] = 128
    path = tmp_path / "canary.yaml"
    path.write_text(manifest_yaml(wanted))
    nowhere = str(tmp_path / "nowhere")
    verdict = with_manifest(judged(healthy(0)), str(path), NodeOptions(proc_root=nowhere, sys_root=nowhere))
    drift = {finding.evidence["option"]: finding for finding in verdict.findings if finding.code == "LAUNCH-DRIFT"}
    assert drift["cache.page_size"].message == "cache.page_size: 128 is wanted, the server reports 64"
    assert "cache.hicache_size_gb" not in drift
    assert all(finding.severity == "breach" and finding.server == SERVER for finding in drift.values())


def test_a_server_without_a_launch_cannot_pass_a_manifest(tmp_path: Path) -> None:
    sample = healthy(0)
    assert sample.processes is not None
    silent = replace(sample.processes.servers[0], argv=())
    sample = replace(sample, processes=replace(sample.processes, servers=(silent,)), infos={})
    path = tmp_path / "canary.yaml"
    path.write_text("sglang: {tag: v0.5.18}\n")
    (finding,) = [one for one in with_manifest(judged(sample), str(path), NodeOptions()).findings if one.advice]
    assert (finding.code, finding.severity) == ("LAUNCH-DRIFT", "breach")


def loading(second: float) -> Sample:
    """The server answers nothing yet."""
    return replace(healthy(second), infos={}, metrics={})


def test_wait_ready_waits_for_the_server() -> None:
    feed = StoryFeed(lambda number: loading(number) if number < 3 else healthy(number))
    told: list[str] = []
    assert wait_ready(feed, Reconciler(), 30.0, told.append, step_seconds=0.0) is None
    assert feed.asked > 3
    assert told[-1].startswith(SERVER)


def test_wait_ready_says_who_is_not() -> None:
    reason = wait_ready(StoryFeed(loading), Reconciler(), 0.0, lambda _: None, step_seconds=0.0)
    assert reason is not None
    assert reason.startswith(f"not ready in time: {SERVER}")


def test_wait_ready_ends_with_a_death() -> None:
    def story(number: int) -> Sample:
        return loading(number) if number < 2 else without_rank(loading(number), 3)

    reason = wait_ready(StoryFeed(story), Reconciler(), 30.0, lambda _: None, step_seconds=0.0)
    assert reason is not None
    assert reason.startswith(f"RANK-DEAD: pid {pid_of(3)}")


def test_wait_ready_without_a_server() -> None:
    empty = replace(loading(0), processes=Processes())
    reason = wait_ready(StoryFeed([empty]), Reconciler(), 0.0, lambda _: None, step_seconds=0.0)
    assert reason == "not ready in time: no server started"


@pytest.mark.parametrize("arguments", [("--json", "--markdown"), ("--window", "2h"), ("--only", "NONSENSE")])
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(check, arguments, standalone_mode=False)
    assert isinstance(done.exception, UsageProblem)


def test_the_command_takes_them_all() -> None:
    page = b'sglang:num_running_reqs{tp_rank="0"} 1.0\n'
    with answering(200, page) as url:
        done = ranktop("check", "--url", url, "--window", "1s", "--json", "--only", "GPU-LOST", "--fail-on", "info")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["findings"] == []


def test_launches_of_two_runs_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same start again only brings its figures up to date; another server's launches stay."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first = Launch("a:1", 1000.0, "0.5.18", {"tp_size": 8})
    second = Launch("a:1", 5000.0, "0.5.18", {"tp_size": 8, "hicache_size": 120})
    remember([first, Launch("b:1", 1500.0)])
    remember([second])
    remember([replace(second, host_hit=0.24)])
    assert [(one.server, one.started_unix_seconds, one.host_hit) for one in remembered()] == [
        ("a:1", 1000.0, None),
        ("a:1", 5000.0, 0.24),
        ("b:1", 1500.0, None),
    ]


def test_a_state_folder_that_cannot_be_written_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ranktop").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    remember([Launch("a:1", 1000.0)])
    assert remembered() == ()
