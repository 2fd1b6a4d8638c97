"""SGLang's request records: followed over the hours, tokens and times only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.requests_log import RequestsCollector, parse_lines
from ranktop.sample import NoData, Processes, ServerProcess

RECORD: dict[str, Any] = {
    "request_parameters": json.dumps({"text": "a SECRET prompt", "rid": "1"}),
    "id": "1",
    "finish_reason": {"type": "stop", "matched": 2},
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "cached_tokens": 900,
    "cached_tokens_details": {"device": 100, "host": 800},
    "e2e_latency": 2.5,
    "queue_time": 0.25,
    "request_received_ts": 100.0,
    "prefill_finished_time": 100.5,
    "request_finished_ts": 102.5,
    "spec_accept_length": 2.5,
    "spec_verify_ct": 20,
    "dp_rank": 0,
    "output_ids": [1, 2, 3],
}


def line(**changes: Any) -> bytes:
    return json.dumps(RECORD | changes).encode()


def test_a_record() -> None:
    (record,) = parse_lines([line()])
    assert record.population == "l2"
    assert (record.prompt_tokens, record.cached_tokens, record.output_tokens) == (1000, 900, 50)
    assert (record.device_tokens, record.host_tokens, record.storage_tokens) == (100, 800, None)
    assert (record.ttft_seconds, record.e2e_seconds, record.queue_seconds) == (0.5, 2.5, 0.25)
    assert (record.accept_length, record.verify_steps, record.dp_rank, record.finish) == (2.5, 20, 0, "stop")
    assert record.finished_unix_seconds == 102.5
    assert b"SECRET" not in msgspec.json.encode(record)


@pytest.mark.parametrize(
    ("changes", "population"),
    [
        ({"cached_tokens": 0, "cached_tokens_details": None}, "cold"),
        ({"cached_tokens": 900, "cached_tokens_details": {"device": 900, "host": 0}}, "l1"),
        ({"cached_tokens_details": {"device": 100, "host": 500, "storage": 300}}, "l3"),
        ({"cached_tokens": 499}, "partial"),
        ({"cached_tokens": 500}, "l2"),
        ({"cached_tokens_details": None}, "l1"),
        ({"cached_tokens": None}, "unknown"),
        ({"prompt_tokens": 0, "cached_tokens": 0}, "unknown"),
    ],
)
def test_populations(changes: dict[str, Any], population: str) -> None:
    assert parse_lines([line(**changes)])[0].population == population


def test_times_that_go_back_are_no_time() -> None:
    assert parse_lines([line(prefill_finished_time=99.0)])[0].ttft_seconds is None


def test_lines_that_are_no_record_are_left_out() -> None:
    bad = [b"", b"{", b"[]", b'"x"', line()[:-5], b"[" * 50_000, line(prompt_tokens="many"), b"\xff\xfe"]
    assert len(parse_lines([*bad, line()])) == 1


@given(st.dictionaries(st.sampled_from(list(RECORD)), st.none() | st.integers() | st.floats() | st.text(max_size=4)))
def test_any_object_is_read(changes: dict[str, Any]) -> None:
    assert len(parse_lines([line(**changes)])) <= 1


def test_following_over_the_hour(tmp_path: Path) -> None:
    first, second = (tmp_path / f"sglang-request-metrics-20261129_{hour}.log" for hour in ("09", "10"))
    first.write_bytes(line(dp_rank=1) + b"\n")
    collector = RequestsCollector("a:1", tmp_path)
    assert [record.dp_rank for record in collector.read(None, 0.0)] == [1]
    assert collector.read(None, 0.0) == ()
    with first.open("ab") as file:
        file.write(line(dp_rank=2) + b"\n")
    second.write_bytes(line(dp_rank=3) + b"\n")
    assert [record.dp_rank for record in collector.read(None, 0.0)] == [2]
    assert [record.dp_rank for record in collector.read(None, 0.0)] == [3]
    assert collector.read(None, 0.0) == ()
    collector.close()


def test_the_folder_comes_from_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "42" / "root" / "records"
    folder.mkdir(parents=True)
    (folder / "sglang-request-metrics-20261129_09.log").write_bytes(line() + b"\n")

    def processes(*argv: str) -> Processes:
        return Processes(servers=(ServerProcess(id="a:1", pid=42, start_ticks=1, argv=argv),))

    collector = RequestsCollector("a:1", proc_root=str(tmp_path))
    found = collector.read(processes("python", "--export-metrics-to-file-dir", "/records"), 0.0)
    assert len(found) == 1
    collector.close()
    for known, code in ((processes("python"), "not_exported"), (None, "no_process")):
        with pytest.raises(NoData) as caught:
            RequestsCollector("a:1", proc_root=str(tmp_path)).read(known, 0.0)
        assert caught.value.code == code


def test_no_file_yet(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(NoData) as caught:
            RequestsCollector("a:1", folder).read(None, 0.0)
        assert caught.value.code == "no_file"
