"""`/server_info` gives arguments and memory, and no secret passes the door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.secrets import without_secrets
from collectors.server_info import RETRY_SECONDS, SETTLED_SECONDS, ServerInfoCollector, parse
from ranktop.sample import SourceError
from tests.collectors.sglang_stub import stub_server

MODEL = {"model_path": "/m", "served_model_name": "GLM", "architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm"}


@pytest.mark.shared
@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_genuine_answers(shared: Path, version: str) -> None:
    raw = (shared / "samples" / f"server_info_{version}_tp8_hicache64_l3.json").read_bytes()
    info = parse("a:1", json.loads(raw), MODEL)
    assert info.version == version
    assert info.args["tp_size"] == 8
    assert info.args["hicache_size"] == 64
    assert (info.max_total_num_tokens, info.weight_gib, info.kv_cache_gib) == (432000, 91.4, 24.0)
    assert info.graph_gib == pytest.approx(2.17)
    assert info.architectures == ("GlmMoeDsaForCausalLM",)
    assert info.is_ready is True
    kept = msgspec.json.encode(info)
    assert b"SAMPLE" not in kept
    assert b"launch_command" not in kept
    assert b"internal_states" not in kept


def test_asked_until_answered_then_hourly_and_again_after_a_failure() -> None:
    answers = {"/server_info": (503, b"")}
    with stub_server(answers) as stub:
        collector = ServerInfoCollector("a:1", stub.url)
        with pytest.raises(SourceError) as caught:
            collector.read(None, 0.0)
        assert caught.value.code == "http_503"
        assert collector.period_seconds == RETRY_SECONDS
        answers["/server_info"] = (200, b'{"version": "0.5.18", "status": "ready"}')
        assert collector.read(None, 0.0).version == "0.5.18"
        assert collector.period_seconds == SETTLED_SECONDS
        assert not [path for path, _ in stub.asked if "health" in path]


def test_ready_is_asked_where_server_info_does_not_say() -> None:
    with stub_server({"/server_info": (200, b"{}"), "/ready": (503, b"")}) as stub:
        assert ServerInfoCollector("a:1", stub.url).read(None, 0.0).is_ready is False
    with stub_server({"/server_info": (200, b"{}")}) as stub:
        assert ServerInfoCollector("a:1", stub.url).read(None, 0.0).is_ready is None


def test_the_key_goes_with_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTOP_API_KEY", "sk-1")
    with stub_server({"/server_info": (200, b"{}")}) as stub:
        ServerInfoCollector("a:1", stub.url).read(None, 0.0)
    assert stub.asked[0][1]["Authorization"] == "Bearer sk-1"


def test_the_storage_backend_is_asked_only_with_an_admin_key(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "/server_info": (200, b"{}"),
        "/hicache/storage-backend": (200, b'{"hicache_storage_backend": "mooncake"}'),
    }
    with stub_server(answers) as stub:
        assert ServerInfoCollector("a:1", stub.url).read(None, 0.0).storage_backend is None
        assert "/hicache/storage-backend" not in [path for path, _ in stub.asked]
        monkeypatch.setenv("RANKTOP_ADMIN_API_KEY", "adm")
        assert ServerInfoCollector("a:1", stub.url).read(None, 0.0).storage_backend == "mooncake"
        assert stub.asked[-1][1]["Authorization"] == "Bearer adm"
        assert stub.asked[-2][1].get("Authorization") is None
        answers["/hicache/storage-backend"] = (400, b"")
        assert ServerInfoCollector("a:1", stub.url).read(None, 0.0).storage_backend is None


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000])
def test_not_a_json_object(body: bytes) -> None:
    with stub_server({"/server_info": (200, body)}) as stub, pytest.raises(SourceError) as caught:
        ServerInfoCollector("a:1", stub.url).read(None, 0.0)
    assert caught.value.code == "bad_answer"


@pytest.mark.parametrize(
    ("graph", "gib"), [(2.5, 2.5), ({"prefill": 0.5, "decode": 2}, 2.5), ({}, None), (None, None), ("x", None)]
)
def test_graph_memory_in_both_forms(graph: Any, gib: float | None) -> None:
    info = {"internal_states": [{"memory_usage": {"graph": graph}}]}
    assert parse("a:1", info, {}).graph_gib == gib


def test_secrets_in_every_hiding_place() -> None:
    value = {
        "api_key": "S1",
        "ssl_keyfile_password": "S2",
        "hf_token": "S3",
        "max_total_num_tokens": 5,
        "token_usage": 0.5,
        "nested": [{"aws_secret_access_key": "S4"}],
        "hicache_storage_backend_extra_config": '{"master": "http://u:S5@h:1", "password": "S6", "tp": 1}',
        "broken_config": '{"password": "S7"',
        "encoder_urls": ["http://user:S8@host"],
        "launch_command": "--api-key S9",
    }
    kept = without_secrets(value)
    assert not any(f"S{number}" in json.dumps(kept) for number in range(1, 10))
    assert kept["max_total_num_tokens"] == 5
    assert kept["token_usage"] == 0.5
    assert json.loads(kept["hicache_storage_backend_extra_config"]) == {"master": "http://h:1", "tp": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["version", "status", "internal_states", "max_total_num_tokens", "x"]), JSON),
    st.dictionaries(st.sampled_from(["model_path", "architectures", "model_type"]), JSON),
)
def test_any_object_is_read(info: dict[str, Any], model: dict[str, Any]) -> None:
    assert parse("a:1", info, model).server == "a:1"
