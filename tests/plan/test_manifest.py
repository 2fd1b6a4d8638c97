"""The canary manifest: the audit's minimum, and a strict comparison with a server."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ranktop.plan import compute_plan, launch_from_server_info, parse_launch
from ranktop.plan.manifest import (
    RUNTIME_KEYS,
    TO_FILL,
    compare_manifest,
    manifest_from_yaml,
    manifest_of,
    manifest_yaml,
)

from .support import LAYER_SPLIT

LINE = (
    "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 "
    "--revision ba978f7d347eaf65d22f1a86833408afdb953541 "
    "--tp 4 --disaggregation-mode prefill --disaggregation-transfer-backend mooncake --enable-prefill-cp "
    "--attn-cp-size 4 --cp-strategy interleave --enable-dsa-cache-layer-split --pipeline-parallel-size 1 "
    "--kv-cache-dtype fp8_e4m3"
)
SEEN = dict.fromkeys(RUNTIME_KEYS, "seen") | {"sglang_commit": "71de97b264b04dcd514cf904003028aefe9775c8"}


def written(line: str = LINE, seen: dict[str, str] | None = None) -> dict[str, Any]:
    request = parse_launch(line)
    return manifest_of(request, compute_plan(request), seen)


def test_the_audits_minimum() -> None:
    manifest = yaml.safe_load(manifest_yaml(written()))
    assert manifest["sglang"] == {"tag": "v0.5.18", "commit": "71de97b264b04dcd514cf904003028aefe9775c8"}
    assert manifest["model"] == {
        "id": "zai-org/GLM-5.2-FP8",
        "revision": "ba978f7d347eaf65d22f1a86833408afdb953541",
    }
    assert (
        manifest["topology"].items()
        >= {
            "role": "pd-prefill",
            "attention_cp": 4,
            "cp_strategy": "interleave",
            "pipeline_parallel": 1,
            "transfer_backend": "mooncake",
        }.items()
    )
    assert manifest["feature"]["dsa_cache_layer_split"] is True
    assert manifest["expected_ranges"] == [[0, 20], [20, 40], [40, 59], [59, 78]]
    assert manifest["cache"].items() >= {"page_size": 64, "kv_cache_dtype": "fp8_e4m3"}.items()
    assert set(manifest["runtime"].values()) == {TO_FILL}


def test_the_same_launch_has_no_drift() -> None:
    wanted = manifest_from_yaml(manifest_yaml(written(seen=SEEN)))
    assert compare_manifest(wanted, written(seen=SEEN)) == ()


def test_every_difference_is_a_finding() -> None:
    wanted = written(seen=SEEN)
    other = written(LINE.replace("GLM-5.2-FP8", "GLM-5.2").replace("mooncake", "nixl"), SEEN)
    findings = compare_manifest(wanted, other, "127.0.0.1:30000")
    assert {finding.code for finding in findings} == {"LAUNCH-DRIFT"}
    assert {finding.severity for finding in findings} == {"breach"}
    drifted = {finding.evidence["option"] for finding in findings}
    assert {"model.id", "topology.transfer_backend", "feature.dsa_cache_layer_split", "expected_ranges"} <= drifted


@pytest.mark.parametrize("missing", ["commit", "revision"])
def test_what_is_not_reported_fails(missing: str) -> None:
    wanted = written(seen=SEEN)
    report = written(seen=SEEN)
    section = "sglang" if missing == "commit" else "model"
    del report[section][missing]
    (finding,) = compare_manifest(wanted, report)
    assert "does not report it" in finding.message


def test_what_nobody_filled_in_fails() -> None:
    findings = compare_manifest(written(), written(seen=SEEN))
    assert {finding.evidence["option"] for finding in findings} == {f"runtime.{name}" for name in RUNTIME_KEYS}


def test_a_running_server_must_show_its_own_commit() -> None:
    reported = written(seen=dict.fromkeys(RUNTIME_KEYS, "seen"))
    assert [finding.evidence["option"] for finding in compare_manifest(written(seen=SEEN), reported)] == [
        "sglang.commit"
    ]


def test_a_reported_launch_gives_the_same_sections() -> None:
    report = {**LAYER_SPLIT, "attn_cp_size": 4, "model_path": "zai-org/GLM-5.2-FP8", "version": "0.5.18"}
    request = launch_from_server_info(report)
    reported = manifest_of(request, compute_plan(request), SEEN)
    drift = {finding.evidence["option"] for finding in compare_manifest(written(seen=SEEN), reported)}
    assert drift == {"model.revision"}


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [", "just words"])
def test_not_a_manifest(text: str) -> None:
    with pytest.raises(ValueError, match="YAML"):
        manifest_from_yaml(text)
