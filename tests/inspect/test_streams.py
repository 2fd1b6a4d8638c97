"""What belongs to which server, in how many samples, and when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ranktop.inspect.report import Inspection, inspect_paths
from ranktop.inspect.stream import read_stream
from recording.node import SyntheticNode
from support.inspect_case import tar, write
from support.node_text import allocating, allocating_tokens, free_g, log, meminfo, page, pool_log, stream, tags
from support.samples import healthy

LAUNCH = "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp-size 2 --port 30001 --enable-metrics\n"


def judged(files: dict[str, str | bytes], folder: Path, **options: object) -> Inspection:
    return inspect_paths(write(files, folder), **options)  # type: ignore[arg-type]


def tokens(total: int, device: int) -> str:
    return page(
        {
            'sglang:prefill_effective_tokens_total{mode="input",tp_rank="0"}': total - device,
            'sglang:prefill_effective_tokens_total{mode="device_hit",tp_rank="0"}': device,
            'sglang:num_running_reqs{tp_rank="0"}': 1,
        }
    )


def test_a_log_a_page_and_a_launch_are_one_server(tmp_path: Path) -> None:
    found = judged(
        {"run.sh": LAUNCH, "server.log": log("max_total_num_tokens=9000"), "m.prom": tokens(10, 5)}, tmp_path
    )
    (server,) = found.verdict.servers
    assert (server.id, server.pid, server.plan_origin) == ("127.0.0.1:30001", None, "given")
    assert server.plan is not None
    assert server.plan.ranks[0].device.pool_tokens == 9000


def test_two_launches_are_two_servers_with_plans_of_their_own(tmp_path: Path) -> None:
    other = LAUNCH.replace("30001", "30002").replace("--tp-size 2", "--tp-size 4")
    found = judged({"a.sh": LAUNCH, "b.sh": other}, tmp_path)
    assert [(server.id, server.ranks) for server in found.verdict.servers] == [
        ("127.0.0.1:30001", 2),
        ("127.0.0.1:30002", 4),
    ]


def test_a_help_text_is_no_launch(tmp_path: Path) -> None:
    text = (
        "  --enable-metrics      Enable log prometheus metrics.\n  --tp-size TP_SIZE     The tensor parallelism size.\n"
    )
    assert judged({"help.txt": text}, tmp_path).files[0].kind == "unknown"


def test_a_loose_meminfo_beside_a_log_hides_nothing(tmp_path: Path) -> None:
    files = {"sent/meminfo": meminfo(9000, 500), "sent/stat": "x\n", "sent/a.log": log(allocating(10))}
    found = judged(files, tmp_path)
    assert found.verdict.sample.host is not None
    assert [rank.rank for rank in found.verdict.ranks] == ["TP0"]


def test_a_second_bundle_is_not_mixed_with_the_first(tmp_path: Path) -> None:
    found = judged({"a.jsonl": stream([healthy()]), "b.jsonl": stream([healthy(9.0)])}, tmp_path)
    assert found.verdict.sample == healthy()
    assert found.files[1].detail == "samples of a second bundle: inspect the nodes one at a time"


def test_without_an_address_the_file_names_the_server(tmp_path: Path) -> None:
    found = judged({"prefill.log": log(allocating(10)), "decode.log": log(allocating(20))}, tmp_path)
    assert [server.id for server in found.verdict.servers] == ["prefill.log", "decode.log"]


def test_arguments_of_a_log_name_and_plan_the_server(tmp_path: Path) -> None:
    args = "server_args=ServerArgs(model_path='x/GLM-5.2-FP8', host='0.0.0.0', port=30007, tp_size=2, api_key='sk-1')"
    found = judged({"a.log": log(args, tag="")}, tmp_path)
    (server,) = found.verdict.servers
    assert (server.id, server.plan_origin, server.ranks) == ("127.0.0.1:30007", "log", 2)
    assert "sk-1" not in str(found)


def test_one_page_counts_from_the_start(tmp_path: Path) -> None:
    found = judged({"1.prom": tokens(1000, 900)}, tmp_path)
    assert found.window_seconds is None
    assert found.verdict.tiers.device_hit == 0.9
    assert any("one metrics page" in line for line in found.missing)


@pytest.mark.parametrize(("every", "seconds"), [(None, 5.0), (30.0, 30.0)])
def test_successive_pages_are_a_window_apart(every: float | None, seconds: float, tmp_path: Path) -> None:
    found = judged({"b.prom": tokens(1000, 900), "a.prom": tokens(2000, 1000)}, tmp_path, every_seconds=every)
    assert found.window_seconds == seconds
    # In the order given, not in that of names: 100 of the 1000 new tokens were in L1.
    assert found.verdict.tiers.device_hit == 0.1


def test_a_folder_and_its_archive_say_the_same(tmp_path: Path) -> None:
    files = {
        "node/server.log": pool_log(tags(2), allocating(30)),
        "node/1.prom": tokens(9, 3),
        "node/meminfo": meminfo(9000, 500),
    }
    folder = judged(files, tmp_path)
    (tmp_path / "node.tar.gz").write_bytes(tar(files))
    packed = inspect_paths([str(tmp_path / "node.tar.gz")])
    assert packed.verdict.ranks == folder.verdict.ranks
    assert packed.verdict.findings == folder.verdict.findings


def test_time_is_that_of_the_lines_and_not_of_the_copy(tmp_path: Path) -> None:
    found = judged(
        {
            "a.log": log("max_total_num_tokens=9000"),
            "dmesg": "Cannot map memory with base addr 0x7f1 and size of 0x10 pages\n",
        },
        tmp_path,
    )
    assert found.verdict.sample.at_unix_seconds == 1_795_942_800.0
    assert {event.at_unix_seconds for event in found.verdict.sample.events} == {1_795_942_800.0}


def test_the_second_free_table_is_held_against_the_first(tmp_path: Path) -> None:
    text = free_g(251, 1, 200, 0, 1, 250) + pool_log(tags(4), allocating(40)) + free_g(251, 1, 50, 149, 150, 100)
    line = judged({"a.log": text}, tmp_path).verdict.node.line("host.pools")
    assert (line.seen, line.source, line.status) == (149 << 30, "inferred", "ok")


def test_a_pool_grown_past_its_plan_shows_in_shared_memory(tmp_path: Path) -> None:
    text = free_g(251, 1, 200, 0, 1, 250) + pool_log(tags(4), allocating(40)) + free_g(251, 1, 50, 160, 160, 90)
    assert judged({"a.log": text}, tmp_path).verdict.node.line("host.pools").status == "over"


def test_samples_of_a_bundle_are_judged_as_they_are(tmp_path: Path) -> None:
    found = judged({"samples.jsonl": stream([healthy(float(second)) for second in range(3)])}, tmp_path)
    assert found.verdict.sample == healthy(2.0)
    assert [finding for finding in found.verdict.findings if finding.severity != "info"] == []


def test_words_inside_a_json_answer_are_read(tmp_path: Path) -> None:
    body = {
        "object": "error",
        "message": "Not enough host memory available. Requesting 40.00 GB but only have 44.87 GB free.",
    }
    found = judged({"answer.json": json.dumps({"a": [body]})}, tmp_path)
    assert [finding.code for finding in found.verdict.findings] == ["PLAN-HOST-GATE"]


def test_packed_pools_are_read_with_their_tokens(tmp_path: Path) -> None:
    packed = ", packed MTP KV layers: target_layers=78, draft_layers=1, total_layers=79"
    text = pool_log(
        tags(8), allocating_tokens(1_235_008, 64.0, packed), allocating(12.88, "DSA indexer (layout=page_first)")
    )
    (server,) = judged({"a.log": text}, tmp_path).verdict.servers
    assert server.calibration is not None
    assert (server.calibration.fits, server.calibration.row_bytes, server.calibration.index_layers) == (
        "0.5.18",
        656,
        79,
    )


@pytest.mark.shared
def test_genuine_samples_of_one_server_agree(shared: Path) -> None:
    samples = shared / "samples"
    found = inspect_paths(
        [
            str(samples / "composed_0.5.18_tp8_hicache64_fp8_healthy.log"),
            *(str(samples / f"0.5.18_tp8_allsched_hicache_l2l3_scrape{n}.prom") for n in (1, 2, 3)),
            str(samples / "server_info_0.5.18_tp8_hicache64_l3.json"),
        ],
        every_seconds=10.0,
    )
    (server,) = found.verdict.servers
    assert (server.plan_origin, server.version, server.ranks) == ("server_info", "0.5.18", 8)
    for rank in found.verdict.ranks:
        assert [rank.line(name).status for name in ("host.primary", "host.indexer")] == ["ok", "ok"]
        assert rank.pid is None


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("01-", {"TIER-IO-FALLBACK", "PLAN-SIZE-WITHOUT-INDEXER", "PLAN-UNTESTED"}),
        ("03-", {"HOST-OOM-KILL"}),
        ("07-", {"PLAN-HOST-GATE"}),
        ("12-", {"HOST-NOT-PINNED"}),
        ("14-", {"HOST-NOT-PINNED"}),
        ("29-", {"L2-NEVER-READ"}),
        ("32-", {"L2-DROPPED"}),
        ("34-", {"L3-PREFETCH-EMPTY"}),
        ("42-", {"PLAN-SIZE-BEATS-RATIO"}),
        ("50-", {"PD-FAILURES"}),
        ("52-", {"PD-FAILURES"}),
        ("53-", {"PD-TRANSPORT"}),
        ("56-", {"PD-FAILURES"}),
        ("78-", {"NVML-BROKEN"}),
        ("80-", {"GPU-XID"}),
    ],
)
def test_the_reports_own_files_are_told(name: str, codes: set[str], shared: Path) -> None:
    (path,) = (shared / "cases" / "inputs").glob(f"{name}*")
    assert codes <= {finding.code for finding in inspect_paths([str(path)]).verdict.findings}


def test_samples_are_told_with_the_names_of_their_fields_and_read_back_as_they_were() -> None:
    """A person has jq and no decoder of ranktop's."""
    written = [*SyntheticNode(ranks=2).samples(3), healthy()]
    data = stream(written)
    assert read_stream(data) == written
    told = json.loads(data.splitlines()[-1])
    assert told["processes"]["ranks"][3]["pid"] == healthy().processes.ranks[3].pid  # type: ignore[union-attr]
    assert {source["name"]: source["state"] for source in told["sources"]}["nvml"] == "ok"
    assert told["metrics"]["127.0.0.1:30000"]["keys"][0]["name"].startswith("sglang:")
    assert told["host"]["total_bytes"] == 1511 * 10**9
