"""Models by name and from their config.json."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ranktop.plan import MODELS, LaunchRequest, PlanError, compute_plan, guess_model, model_from_config, model_named

GLM = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa",
    "num_hidden_layers": 78,
    "num_nextn_predict_layers": 1,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "index_head_dim": 128,
    "index_topk_freq": 4,
    "index_skip_topk_offset": 3,
    "max_position_embeddings": 1_048_576,
}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
}


def test_config_gives_the_built_in_facts() -> None:
    assert model_from_config(json.dumps(GLM), "glm-5.2") == model_named("glm-5.2")
    llama = model_from_config(json.dumps(LLAMA).encode(), "llama-3.1-8b")
    assert llama == model_named("llama-3.1-8b")


def test_multimodal_configs_keep_the_text_model_inside() -> None:
    assert model_from_config({"architectures": ["X"], "text_config": GLM}).layers == 78


def test_a_config_without_index_sharing_indexes_every_layer() -> None:
    plain = {name: value for name, value in GLM.items() if "topk" not in name}
    model = model_from_config(plain)
    assert (model.index_layers, model.full_index_layers) == (78, ())


def test_index_layers_by_pattern_and_by_list() -> None:
    pattern = "F" * 10 + "S" * 68
    assert model_from_config(GLM | {"index_topk_pattern": pattern}).full_index_layers == tuple(range(10))
    listed = model_from_config(GLM | {"indexer_types": ["full"] * 22 + ["shared"] * 56})
    flags = {"enable_hierarchical_cache": True, "hicache_size": 16}

    def host_index_layers(version: str) -> int:
        host = compute_plan(LaunchRequest(flags), version=version, model=listed).ranks[0].host
        assert host is not None
        return host.index_layers

    # The list counts from 0.5.20 on, and the host pool leaves layers out from 0.5.22 on.
    assert host_index_layers("0.5.23") == 22
    assert compute_plan(LaunchRequest(flags), version="0.5.19", model=listed).model.index_layers == 21
    assert compute_plan(LaunchRequest(flags), version="0.5.20", model=listed).model.index_layers == 22


def test_what_is_not_covered_is_said() -> None:
    plan = compute_plan(LaunchRequest({}), model=model_from_config(LLAMA | {"sliding_window": 4096}))
    assert any("sliding_window" in note for note in plan.notes)
    assert any("index_kpool" in note for note in model_from_config(GLM | {"index_kpool": 2}).notes)
    assert model_from_config(GLM | {"index_kpool": 1}).notes == ()
    assert any("FP4" in note for note in compute_plan(LaunchRequest({"kv_cache_dtype": "fp4_e2m1"})).notes)


def test_values_narrower_than_keys() -> None:
    plan = compute_plan(
        LaunchRequest({"enable_hierarchical_cache": True, "hicache_size": 1}),
        model=model_from_config(LLAMA | {"v_head_dim": 64}),
    )
    assert plan.ranks[0].host is not None
    assert plan.ranks[0].host.row_bytes == 8 * (128 + 64) * 2


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({**GLM, "num_hidden_layers": None}, "num_hidden_layers"),
        ({**GLM, "num_hidden_layers": "many"}, "num_hidden_layers"),
        ({**GLM, "num_hidden_layers": -3}, "num_hidden_layers"),
        ({**GLM, "qk_rope_head_dim": None}, "qk_rope_head_dim"),
        ({**LLAMA, "num_attention_heads": None}, "num_attention_heads"),
        ({}, "num_hidden_layers"),
        ("[1, 2]", "JSON object"),
        ("not json", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (b" " * (50 << 20), "at most"),
    ],
    ids=range(11),
)
def test_bad_configs(config: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words) as error:
        model_from_config(config)
    assert "\n" not in str(error.value)


def test_unknown_names_list_the_known() -> None:
    with pytest.raises(PlanError, match=r"glm-5\.2, deepseek-v3\.2"):
        model_named("gpt-2")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("zai-org/GLM-5.2-FP8", "glm-5.2"),
        ("/models/glm-5.2-fp8/", "glm-5.2"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", None),
        ("Qwen/Qwen3-32B", "qwen3-32b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("some/other", None),
        (None, None),
    ],
)
def test_guess(path: str | None, name: str | None) -> None:
    guessed = guess_model(path)
    assert (guessed.name if guessed else None) == name


def test_an_assumed_model_is_said() -> None:
    for flags, assumed in (({"model_path": "/m"}, True), ({}, True), ({"model_path": "zai-org/GLM-5.2-FP8"}, False)):
        plan = compute_plan(LaunchRequest(flags))
        assert plan.is_model_assumed is assumed
        assert any("The model is assumed" in note for note in plan.notes) is assumed
    assert compute_plan(LaunchRequest({"model_path": "/m"}), model="glm-5.2").is_model_assumed is False


def test_names_are_their_keys() -> None:
    assert all(name == model.name for name, model in MODELS.items())
