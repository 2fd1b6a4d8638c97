"""`ranktop plan --manifest`: the file, and what a running server fills in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ranktop.cli.errors import UsageProblem
from ranktop.cli.main import run
from ranktop.cli.manifest import manifest_drift, runtime_of
from ranktop.plan import compute_plan, parse_launch
from ranktop.plan.manifest import TO_FILL

LINE = "--model-path zai-org/GLM-5.2-FP8 --tp 8 --enable-hierarchical-cache --hicache-size 64"


def tree(root: Path) -> Path:
    """A /proc/4200 whose root holds a virtual environment with SGLang, and an older one outside it."""
    process = root / "proc/4200"
    for folder, names in {
        "opt/env/lib/python3.11/site-packages": (
            "sglang-0.5.18.dist-info",
            "torch-2.9.0+cu128.dist-info",
            "mooncake_transfer_engine-0.3.6.dist-info",
            "nvidia_cuda_runtime_cu12-12.8.90.dist-info",
            "unrelated-1.dist-info",
        ),
        "usr/local/lib/python3.11/dist-packages": ("sglang-0.4.0.dist-info",),
    }.items():
        for name in names:
            (process / "root" / folder / name).mkdir(parents=True)
    (process / "cmdline").write_text("/opt/env/bin/python\0-m\0sglang.launch_server\0--tp\0008\0")
    (process / "cgroup").write_text("0::/kubepods.slice/cri-containerd-" + "a" * 64 + ".scope\n")
    for device in ("mlx5_1", "mlx5_0"):
        (root / "sys/class/infiniband" / device).mkdir(parents=True)
    return root


def test_runtime(tmp_path: Path) -> None:
    root = tree(tmp_path)
    found = runtime_of(4200, str(root / "proc"), str(root / "sys"))
    assert (
        found.items()
        >= {
            "sglang": "0.5.18",
            "torch": "2.9.0+cu128",
            "mooncake": "0.3.6",
            "cuda": "12.8.90",
            "network_devices": "mlx5_0,mlx5_1",
            "container_id": "a" * 64,
        }.items()
    )
    assert "sglang_commit" not in found


def test_commit_of_an_installation_from_a_repository(tmp_path: Path) -> None:
    root = tree(tmp_path)
    info = root / "proc/4200/root/opt/env/lib/python3.11/site-packages/sglang-0.5.18.dist-info"
    (info / "direct_url.json").write_text(json.dumps({"vcs_info": {"commit_id": "71de97b2"}}))
    assert runtime_of(4200, str(root / "proc"), str(root / "sys"))["sglang_commit"] == "71de97b2"
    (info / "direct_url.json").write_text('{"vcs_info": []}')
    assert "sglang_commit" not in runtime_of(4200, str(root / "proc"), str(root / "sys"))


def test_a_process_that_is_not_there(tmp_path: Path) -> None:
    assert runtime_of(1, str(tmp_path), str(tmp_path)).keys() <= {"gpu_count", "gpu_sku", "driver"}


def test_written_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "canary.yaml"
    assert run(["plan", "--manifest", str(path), "--", LINE]) == 0
    assert "to fill" in capsys.readouterr().out
    manifest = yaml.safe_load(path.read_text())
    assert manifest["model"] == {"id": "zai-org/GLM-5.2-FP8", "revision": TO_FILL}
    assert manifest["cache"]["hicache_size_gb"] == 64


def test_drift_of_a_running_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, path = tree(tmp_path), tmp_path / "canary.yaml"
    assert run(["plan", "--manifest", str(path), "--", LINE]) == 0
    capsys.readouterr()
    request = parse_launch(LINE)
    roots = {"proc_root": str(root / "proc"), "sys_root": str(root / "sys")}
    manifest = yaml.safe_load(path.read_text())
    manifest["model"]["revision"] = "abc"
    manifest["runtime"] = {"torch": "2.9.0+cu128", "cuda": "12.8.90", "mooncake": "0.3.5"}
    path.write_text(yaml.safe_dump(manifest))
    findings = manifest_drift(str(path), request, compute_plan(request), pid=4200, server="a:1", **roots)
    assert {finding.evidence["option"] for finding in findings} == {
        "sglang.commit",
        "model.revision",
        "runtime.mooncake",
    }


@pytest.mark.parametrize("text", [None, "- a", "a: [", "x" * (2 << 20)], ids=["absent", "list", "broken", "huge"])
def test_no_manifest(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "canary.yaml"
    if text is not None:
        path.write_text(text)
    request = parse_launch(LINE)
    with pytest.raises(UsageProblem, match="--manifest"):
        manifest_drift(str(path), request, compute_plan(request), pid=None)


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--manifest", str(tmp_path / "no/such/folder.yaml"), "--", LINE]) == 2
    assert capsys.readouterr().err.count("\n") == 1
