"""Model facts: the built-in models by name, and any DSA, plain MLA or GQA model from its `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ranktop.plan.plan import ModelFacts, PlanError

MAX_CONFIG_BYTES = 8 << 20
"""A config.json is some kilobytes; more is another file by mistake."""

DEFAULT_MODEL = "glm-5.2"


def _shared_index(layers: int, frequency: int, offset: int) -> tuple[int, ...]:
    """Layers that compute their own index under IndexShare: `max(i - offset + 1, 0) % frequency == 0`."""
    return tuple(layer for layer in range(layers) if max(layer - offset + 1, 0) % frequency == 0)


MODELS: dict[str, ModelFacts] = {
    model.name: model
    for model in (
        ModelFacts(
            "glm-5.2",
            78,
            1,
            kv_lora_rank=512,
            qk_rope_head_dim=64,
            index_head_dim=128,
            index_layers=21,
            full_index_layers=_shared_index(78, 4, 3),
            architecture="GlmMoeDsaForCausalLM",
            max_position=1_048_576,
        ),
        ModelFacts(
            "deepseek-v3.2",
            61,
            1,
            kv_lora_rank=512,
            qk_rope_head_dim=64,
            index_head_dim=128,
            index_layers=61,
            architecture="DeepseekV32ForCausalLM",
        ),
        ModelFacts(
            "deepseek-v3",
            61,
            1,
            kv_lora_rank=512,
            qk_rope_head_dim=64,
            attention="mla",
            architecture="DeepseekV3ForCausalLM",
        ),
        ModelFacts("qwen3-32b", 64, attention="gqa", kv_heads=8, head_dim=128, architecture="Qwen3ForCausalLM"),
        ModelFacts("llama-3.1-8b", 32, attention="gqa", kv_heads=8, head_dim=128, architecture="LlamaForCausalLM"),
    )
}

_UNCOVERED = (
    ("sliding_window", "sliding-window layers have a host pool of their own"),
    ("linear_num_value_heads", "linear-attention layers keep state pools"),
    ("mamba_d_state", "Mamba layers keep state pools"),
    ("ssm_state_size", "Mamba layers keep state pools"),
    ("compress_ratios", "DeepSeek-V4 pools are not modelled"),
)


def model_named(name: str) -> ModelFacts:
    """The built-in model. Raises PlanError with the names there are."""
    model = MODELS.get(name.lower())
    if model is None:
        raise PlanError(f"--model {name!r}: {', '.join(MODELS)} are built in; else give --model-config FILE")
    return model


def guess_model(model_path: object) -> ModelFacts | None:
    """The built-in model that a model path or id plainly names, else None; so for what is no text in a report."""
    if not isinstance(model_path, str):
        return None
    name = model_path.rstrip("/").rsplit("/", 1)[-1].lower().replace("_", "-")
    if name.startswith(("deepseek-v3-", "deepseek-r1")) and not name.startswith("deepseek-v3-2"):
        return MODELS["deepseek-v3"] if "distill" not in name else None
    matches = [known for known in MODELS if name.startswith((known, "meta-" + known))]
    return MODELS[max(matches, key=len)] if matches else None


def model_from_config(data: bytes | str | Mapping[str, Any], name: str | None = None) -> ModelFacts:
    """Model facts from a Hugging Face `config.json`. Raises PlanError naming the field that is missing or wrong."""
    config = _decoded(data)
    inner = config.get("text_config")
    config = inner if isinstance(inner, Mapping) else config
    architectures = config.get("architectures")
    facts = ModelFacts(
        name or str(config.get("_name_or_path") or config.get("model_type") or "model"),
        _integer(config, "num_hidden_layers"),
        _integer(config, "num_nextn_predict_layers", default=0),
        architecture=str(architectures[0]) if isinstance(architectures, list) and architectures else None,
        max_position=_integer(config, "max_position_embeddings", default=0) or None,
        notes=tuple(
            f"{field} is set: {why}; the plan leaves them out" for field, why in _UNCOVERED if config.get(field)
        ),
    )
    if config.get("kv_lora_rank") is None:
        heads = _integer(config, "num_attention_heads")
        return replace(
            facts,
            attention="gqa",
            kv_heads=_integer(config, "num_key_value_heads", default=0) or heads,
            head_dim=_integer(config, "head_dim", default=0) or _integer(config, "hidden_size") // heads,
            v_head_dim=_integer(config, "v_head_dim", default=0) or None,
        )
    facts = replace(
        facts,
        attention="mla",
        kv_lora_rank=_integer(config, "kv_lora_rank"),
        qk_rope_head_dim=_integer(config, "qk_rope_head_dim"),
    )
    return facts if config.get("index_head_dim") is None else _with_indexer(facts, config)


def _with_indexer(facts: ModelFacts, config: Mapping[str, Any]) -> ModelFacts:
    if _integer(config, "index_kpool", default=1) > 1:
        facts = replace(
            facts, notes=(*facts.notes, "index_kpool is above 1: pages of 64 x index_kpool are not modelled")
        )
    full = _full_index_layers(config, facts.layers)
    types = config.get("indexer_types")
    listed: tuple[int, ...] = ()
    if isinstance(types, list) and len(types) >= facts.layers:
        listed = tuple(layer for layer in range(facts.layers) if types[layer] == "full")
    return replace(
        facts,
        attention="dsa",
        index_head_dim=_integer(config, "index_head_dim"),
        index_layers=len(full) or facts.layers,
        full_index_layers=full,
        listed_index_layers=listed,
    )


def _decoded(data: bytes | str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        return data
    if len(data) > MAX_CONFIG_BYTES:
        raise PlanError(f"model config: {len(data)} bytes, at most {MAX_CONFIG_BYTES} are read; give a config.json")
    try:
        config = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlanError(f"model config: not JSON ({error}); give the model's config.json") from None
    if not isinstance(config, dict):
        raise PlanError("model config: a JSON object is accepted; give the model's config.json")
    return config


def _integer(config: Mapping[str, Any], field: str, default: int | None = None) -> int:
    value = config.get(field)
    if value is None and default is not None:
        return default
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not 0 <= value < 1 << 31
        or (value == 0 and default is None)
    ):
        raise PlanError(f"model config: {field} is {value!r}; a positive whole number is accepted")
    return value


def _full_index_layers(config: Mapping[str, Any], layers: int) -> tuple[int, ...]:
    """Layers with an index of their own by a pattern, or by frequency and offset; empty for all."""
    pattern = config.get("index_topk_pattern")
    if isinstance(pattern, str) and len(pattern) >= layers:
        return tuple(layer for layer in range(layers) if pattern[layer].upper() == "F")
    frequency = _integer(config, "index_topk_freq", default=1)
    if frequency <= 1:
        return ()
    return _shared_index(layers, frequency, _integer(config, "index_skip_topk_offset", default=1))
