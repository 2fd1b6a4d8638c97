"""The reconciliation over time: deterministic, honest about what is missing, and clear in its sentence."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler, Verdict
from ranktop.sample import ModelConfig, Processes, Sample, SourceState
from support import samples


def judge(*story: Sample) -> list[Verdict]:
    reconciler = Reconciler()
    return [reconciler.update(sample) for sample in story]


def story() -> list[Sample]:
    quiet = [samples.healthy(second) for second in range(5)]
    trouble = [samples.with_pool(samples.healthy(5 + second), 3, 132_000_000_000) for second in range(3)]
    return [*quiet, *trouble, *(samples.without_rank(samples.healthy(8 + second), 5) for second in range(3))]


def test_the_same_samples_give_the_same_verdicts() -> None:
    assert judge(*story()) == judge(*story())


def test_every_rank_has_every_line_once() -> None:
    (verdict,) = judge(samples.healthy())
    for rank in verdict.ranks:
        names = [line.line for line in rank.lines]
        assert len(names) == len(set(names))
        for line in rank.lines:
            assert (line.seen is None) == (line.status == "unknown"), line.line
            assert line.seen is not None or line.detail, f"{line.line} is missing without a reason"
            assert line.seen is None or line.source, f"{line.line} has no source"


def test_a_server_that_runs_and_sleeps_in_turns_keeps_its_plan() -> None:
    def in_state(state: str, second: float) -> Sample:
        sample = samples.healthy(second)
        assert sample.processes is not None
        servers = tuple(replace(server, state=state) for server in sample.processes.servers)
        return replace(sample, processes=replace(sample.processes, servers=servers))

    first, second = judge(in_state("S", 0.0), in_state("R", 1.0))
    assert first.servers[0].plan is not None
    assert second.servers[0].plan is first.servers[0].plan


def test_without_sources_nothing_is_zero_and_nothing_is_fine() -> None:
    (verdict,) = judge(Sample(samples.START, 0.0, "node-a"))
    assert verdict.ranks == ()
    assert verdict.findings == ()
    assert {line.seen for line in verdict.node.lines} == {None}
    assert verdict.headline == "looking for SGLang servers on this node"


def test_a_plan_without_processes_is_all_unknown() -> None:
    sample = samples.healthy()
    assert sample.processes is not None
    gone = replace(sample, processes=replace(sample.processes, ranks=()), mappings={}, placements={}, gpus=None)
    (verdict,) = judge(gone)
    assert len(verdict.ranks) == 8
    assert {rank.pid for rank in verdict.ranks} == {None}
    assert {rank.line("host.primary").status for rank in verdict.ranks} == {"unknown"}


@pytest.mark.parametrize(
    ("sample", "says"),
    [
        (samples.healthy(), "within plan since "),
        (replace(samples.healthy(), processes=Processes(), metrics={}, infos={}), "no SGLang server on this node yet"),
        (
            Sample(samples.START, 0.0, processes=Processes(only_pids=(1, 4200))),
            "no SGLang server with main process 1, 4200 on this node (leave --pid out for all)",
        ),
        (
            Sample(
                samples.START,
                0.0,
                sources=(SourceState("processes", "error", code="unreadable", detail="/proc: not mounted"),),
            ),
            "the processes of this node cannot be read: /proc: not mounted",
        ),
        (
            replace(samples.healthy(), infos={}, metrics={}),
            "127.0.0.1:30000 is not ready yet",
        ),
        (
            replace(
                samples.healthy(),
                infos={},
                metrics={},
                sources=(SourceState("metrics", "absent", code="waiting", server="127.0.0.1:30000"),),
            ),
            "asking 127.0.0.1:30000",
        ),
    ],
    ids=["well", "no server", "no server of that pid", "unreadable", "loading", "not asked yet"],
)
def test_the_sentence(sample: Sample, says: str) -> None:
    assert judge(sample)[0].headline.startswith(says)


def test_within_plan_since_starts_anew_after_trouble() -> None:
    verdicts = judge(
        samples.healthy(0),
        samples.with_pool(samples.healthy(1), 3, 132_000_000_000),
        *map(samples.healthy, range(2, 9)),
    )
    assert verdicts[0].within_plan_since == samples.START
    assert verdicts[1].within_plan_since is None
    assert verdicts[-1].within_plan_since == samples.START + 4, "three clear updates close the finding"


def test_a_launch_line_is_planned_when_the_server_says_nothing() -> None:
    (verdict,) = judge(replace(samples.healthy(), infos={}))
    (server,) = verdict.servers
    assert server.plan_origin == "command line"
    assert server.plan is not None
    assert server.plan.node.allocated_bytes == 1_153_176_121_344


def test_a_launch_that_cannot_be_planned_says_why() -> None:
    sample = samples.healthy()
    assert sample.processes is not None
    (main,) = sample.processes.servers
    broken = replace(main, argv=("python", "-m", "sglang.launch_server", "--tp-size", "many"))
    (verdict,) = judge(replace(sample, processes=replace(sample.processes, servers=(broken,)), infos={}))
    assert verdict.servers[0].plan is None
    assert "tp-size" in (verdict.servers[0].plan_error or "") or "tp_size" in (verdict.servers[0].plan_error or "")
    assert "watching without a plan" in verdict.headline
    assert len(verdict.ranks) == 8


def test_an_unknown_flag_is_kept_and_listed() -> None:
    sample = samples.healthy()
    assert sample.processes is not None
    (main,) = sample.processes.servers
    odd = replace(main, argv=(*main.argv, "--quantum-cache", "7"))
    (verdict,) = judge(replace(sample, processes=replace(sample.processes, servers=(odd,)), infos={}))
    plan = verdict.servers[0].plan
    assert plan is not None
    assert any("quantum-cache" in flag for flag in plan.launch.unknown_flags)


def with_model(sample: Sample, path: str, config: ModelConfig | None = None) -> Sample:
    assert sample.processes is not None
    (main,) = sample.processes.servers
    argv = tuple(path if word == "zai-org/GLM-5.2-FP8" else word for word in main.argv)
    configs = {samples.SERVER: config} if config else {}
    processes = replace(sample.processes, servers=(replace(main, argv=argv),))
    return replace(sample, processes=processes, infos={}, model_configs=configs)


def test_a_model_that_nobody_knows_has_no_plan_and_no_alarm() -> None:
    (verdict,) = judge(with_model(samples.healthy(), "me/my-model"))
    assert verdict.servers[0].plan is None
    assert "me/my-model is not built in" in (verdict.servers[0].plan_error or "")
    assert [finding for finding in verdict.findings if finding.severity != "info"] == []


def test_a_model_is_planned_from_its_own_config() -> None:
    fields = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 10,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "hidden_size": 4096,
        "head_dim": 128,
    }
    config = ModelConfig(samples.SERVER, "/m/config.json", fields)
    (verdict,) = judge(with_model(samples.healthy(), "me/my-model", config))
    plan = verdict.servers[0].plan
    assert plan is not None
    assert plan.model.layers == 10
    assert plan.ranks[0].host is not None
    assert plan.ranks[0].host.layers == 10


def test_a_page_that_is_kept_for_an_hour_is_judged_still() -> None:
    reconciler = Reconciler()
    reconciler.update(samples.healthy(0))
    later = samples.healthy(1)
    old = replace(
        later,
        at_unix_seconds=later.at_unix_seconds + 3600,
        at_monotonic_seconds=later.at_monotonic_seconds + 3600,
        metrics=samples.healthy(0).metrics,
    )
    assert len(reconciler.update(old).ranks) == 8
