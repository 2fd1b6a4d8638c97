"""The canary manifest of the audits: what a run must be, written from a plan, compared strictly with a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktop.finding import Finding
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.plan import Plan

TO_FILL = "to fill"

AUDITED_COMMITS = {"0.5.18": "71de97b264b04dcd514cf904003028aefe9775c8"}
"""The commit that the release's tag resolved to, by the audits."""

_ROLES = {"unified": "unified", "prefill": "pd-prefill", "decode": "pd-decode"}


def manifest_of(request: LaunchRequest, plan: Plan, seen: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The manifest as sections of values.

    `seen` is what a running server shows (RUNTIME_KEYS, `sglang`, `sglang_commit`); None for a plan on paper.
    """
    launch, known = plan.launch, dict(seen or {})
    split = plan.layer_split
    return {
        "sglang": {
            "tag": f"v{known.get('sglang', plan.sglang.version).removeprefix('v')}",
            "commit": known.get("sglang_commit", TO_FILL) if seen is not None else _audited_commit(plan),
        },
        "model": {
            "id": request.flags.get("model_path", TO_FILL),
            "revision": request.flags.get("revision", TO_FILL),
        },
        "topology": {
            "role": _ROLES[launch.role],
            "tensor_parallel": launch.tp_size,
            "data_parallel": launch.dp_size,
            "attention_cp": launch.attn_cp_size,
            "cp_strategy": request.flags.get("cp_strategy", "none"),
            "pipeline_parallel": launch.pp_size,
            "transfer_backend": _transfer(request, plan),
        },
        "cache": {
            "page_size": launch.page_size,
            "kv_cache_dtype": launch.kv_cache_dtype,
            "hicache": launch.hicache,
            "hicache_size_gb": launch.hicache_size_gb if launch.hicache else None,
            "mem_layout": launch.mem_layout if launch.hicache else None,
            "write_policy": launch.write_policy if launch.hicache else None,
            "storage_backend": launch.storage_backend,
        },
        "feature": {"dsa_cache_layer_split": split.active, "speculative": launch.speculative},
        "expected_ranges": [list(part) for part in split.ranges],
        "runtime": {name: known.get(name, TO_FILL) for name in RUNTIME_KEYS},
        "record": dict.fromkeys(RECORD_KEYS, TO_FILL),
    }


def _audited_commit(plan: Plan) -> str:
    return AUDITED_COMMITS.get(plan.sglang.version, TO_FILL)


def _transfer(request: LaunchRequest, plan: Plan) -> str:
    if plan.launch.role == "unified":
        return "none"
    backend = request.flags.get("disaggregation_transfer_backend", "mooncake")
    return "mooncake" if backend == "mooncake_tcp" else backend


RUNTIME_KEYS = (
    "container_id",
    "gpu_sku",
    "gpu_count",
    "driver",
    "cuda",
    "torch",
    "mooncake",
    "network_devices",
)
"""What the audit adds to the minimum and a machine can show."""

RECORD_KEYS = ("container_digest", "router_revision", "request_corpus_sha256")
"""What only the operator knows: kept for the record, never compared."""


def manifest_yaml(manifest: Mapping[str, Any]) -> str:
    """The manifest as YAML, a layer range on one line."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def ranges_in_a_line(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
        is_range = all(isinstance(item, int) for item in items)
        return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_range)

    Dumper.add_representer(list, ranges_in_a_line)
    return yaml.dump(dict(manifest), Dumper=Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True)


def manifest_from_yaml(text: str) -> dict[str, Any]:
    """A manifest that somebody wrote. Raises ValueError when it is none."""
    import yaml

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML ({str(error).splitlines()[0]})") from None
    if not isinstance(document, dict):
        raise ValueError("a YAML mapping with sections such as `sglang`, `model`, `topology` is accepted")
    return document


def compare_manifest(
    manifest: Mapping[str, Any], reported: Mapping[str, Any], server: str | None = None
) -> tuple[Finding, ...]:
    """LAUNCH-DRIFT for every value of the manifest that the server does not report as such.

    `reported` has the same sections (`manifest_of` of the server's own launch). Strict: what the server does not
    report fails, no default is trusted. What is still `to fill` fails too: nobody has said what it must be. The
    operator's `record` is not compared.
    """
    wanted = dict(_leaves({name: section for name, section in manifest.items() if name != "record"}))
    seen = dict(_leaves(reported))
    findings: list[Finding] = []
    for path, value in wanted.items():
        actual = seen.get(path)
        if value == actual and value != TO_FILL:
            continue
        if value == TO_FILL:
            message = f"{path}: the manifest does not say what it must be"
        elif actual is None or actual == TO_FILL:
            message = f"{path}: {value!r} is wanted, the server does not report it"
        else:
            message = f"{path}: {value!r} is wanted, the server reports {actual!r}"
        findings.append(
            Finding(
                "LAUNCH-DRIFT",
                "breach",
                message,
                scope="server",
                server=server,
                evidence={"option": path, "wanted": value, "reported": actual},
                sources={"wanted": "given", "reported": "reported"},
                advice="Do not promote this run: correct the launch or the manifest.",
            )
        )
    return tuple(findings)


def _leaves(node: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(node, Mapping):
        return [(path, list(node) if isinstance(node, tuple) else node)] if node is not None else []
    return [leaf for name, child in node.items() for leaf in _leaves(child, f"{path}.{name}" if path else str(name))]
