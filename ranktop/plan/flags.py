"""How a command line spells SGLang's server arguments: aliases, old names, types, and what must never be kept."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from ranktop.plan.field_names import BOOLEAN_FIELDS, FLOAT_FIELDS, INTEGER_FIELDS, KNOWN_FIELDS, LIST_FIELDS
from ranktop.plan.plan import PlanError

ALIASES = {
    "model": "model_path",
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "ep": "ep_size",
    "expert_parallel_size": "ep_size",
    "attention_context_parallel_size": "attn_cp_size",
    "moe_data_parallel_size": "moe_dp_size",
    "dcp": "dcp_size",
    "decode_context_parallel_size": "dcp_size",
    "dist_init_address": "dist_init_addr",
}
"""Other spellings that every release accepts for a field."""

LEGACY = {
    "nsa_prefill_backend": "dsa_prefill_backend",
    "nsa_decode_backend": "dsa_decode_backend",
    "enable_nsa_prefill_context_parallel": "enable_prefill_cp",
    "enable_dsa_prefill_context_parallel": "enable_prefill_cp",
    "enable_prefill_context_parallel": "enable_prefill_cp",
    "nsa_prefill_cp_mode": "cp_strategy",
    "dsa_prefill_cp_mode": "cp_strategy",
    "prefill_cp_mode": "cp_strategy",
}
"""Deprecated names of 0.5.16 to 0.5.19, removed in 0.5.20."""

LEGACY_VALUES = {"round-robin-split": "interleave", "in-seq-split": "zigzag"}

YOUNG = {"enable_hicache": "enable_hierarchical_cache"}
"""Aliases that first exist in 0.5.23."""

FIRST_VERSION = {
    "speculative_draft_kv_cache_dtype": "0.5.18",
    "disaggregation_decode_retraction_backup": "0.5.18",
    "hicache_host_memory_mode": "0.5.19",
    "enable_unified_cache_external_linker": "0.5.20",
    "hicache_host_memory_fraction": "0.5.21",
    "disaggregation_decode_host_receive_threshold": "0.5.21",
    "enable_pd_role_switch": "0.5.21",
    "attn_dp_size": "0.5.22",
    "enable_kv_cache_sharding": "0.5.22",
}
"""The release in which a flag first exists, where the plan reads it."""

_SECRET = re.compile(r"api_?key|passw|secret|credential|(auth|access|bearer|hf|api|admin)_?token|watermark_key")
_URL_USER = re.compile(r"(?<=://)[^/@\s]+@")
_KEPT_ENVIRONMENT = re.compile(
    r"^(SGLANG_|CUDA_VISIBLE_DEVICES$|NCCL_|MC_|MOONCAKE_|NVSHMEM_|PROMETHEUS_MULTIPROC_DIR$)"
)


def is_secret(name: str) -> bool:
    """True for names whose values must not be kept: keys, passwords, credentials, access tokens."""
    return bool(_SECRET.search(name.lower().replace("-", "_")))


def without_user(value: str) -> str:
    """`value` without the user part of any URL in it."""
    return _URL_USER.sub("", value)


def json_without_secrets(text: str) -> str:
    """A JSON object without the members whose names are secrets; `{}` for what is no JSON but could hide one."""
    try:
        decoded = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return "{}" if is_secret(text) else without_user(text)
    return without_user(msgspec.json.encode(_cleaned(decoded)).decode())


def _cleaned(node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _cleaned(value) for name, value in node.items() if not is_secret(str(name))}
    return [_cleaned(item) for item in node] if isinstance(node, list) else node


def keeps_environment(name: str) -> bool:
    """True for the environment variables that a plan may read."""
    return bool(_KEPT_ENVIRONMENT.match(name)) and not is_secret(name)


def field_of(flag: str) -> tuple[str | None, bool]:
    """(SGLang's field name or None when unknown, whether only some releases know the spelling) of `--some-flag`.

    A unique abbreviation is accepted, as argparse does.
    """
    name = flag.lstrip("-").replace("-", "_")
    if name in LEGACY or name in YOUNG:
        return LEGACY.get(name) or YOUNG[name], True
    if name in ALIASES:
        return ALIASES[name], False
    if name in KNOWN_FIELDS:
        return name, False
    return _abbreviated(name), False


@cache
def _abbreviated(name: str) -> str | None:
    if len(name) < 4:
        return None
    fields = {field for field in KNOWN_FIELDS if field.startswith(name)}
    fields |= {field for alias, field in ALIASES.items() if alias.startswith(name)}
    return fields.pop() if len(fields) == 1 else None


def typed(field: str, flag: str, words: list[str]) -> Any:
    """The value of `field` from the words after `flag`. Raises PlanError naming flag, value and what is accepted."""
    if field in BOOLEAN_FIELDS:
        return True
    if not words:
        raise PlanError(f"{flag}: no value given")
    if field in LIST_FIELDS:
        return tuple(without_user(word) for word in words)
    value = words[0]
    if value.lstrip().startswith("{"):
        return json_without_secrets(value)
    if field in INTEGER_FIELDS:
        return _number(int, flag, value, "a whole number")
    if field in FLOAT_FIELDS:
        return _number(float, flag, value, "a number")
    return LEGACY_VALUES.get(value, without_user(value))


def _number(kind: type[int] | type[float], flag: str, value: str, accepted: str) -> Any:
    try:
        number = kind(value)
    except ValueError:
        raise PlanError(f"{flag} {value!r}: {accepted} is accepted") from None
    if kind is float and number == _whole(number):
        return int(number)
    return number


def _whole(number: float) -> int | None:
    """`number` as an int when it is a finite whole number."""
    return int(number) if number == number and abs(number) < 1e18 and number == int(number) else None
