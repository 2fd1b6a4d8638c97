"""The model's config.json is found where the server's own file system has it, and nothing else is believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collectors.model_config import MAX_BYTES, ModelConfigCollector
from ranktop.sample import NoData, Processes, ServerProcess, SourceError

CONFIG = {"num_hidden_layers": 12, "model_type": "mine"}


def node(tmp_path: Path, model: str, **environment: str) -> tuple[ModelConfigCollector, Processes, Path]:
    """A /proc with one server, and the root of its file system."""
    process = tmp_path / "77"
    root = process / "root"
    root.mkdir(parents=True)
    (process / "cwd").symlink_to(root)
    (process / "environ").write_bytes(b"\0".join(f"{name}={text}".encode() for name, text in environment.items()))
    argv = ("python", "-m", "sglang.launch_server", "--model-path", model)
    return ModelConfigCollector("s", tmp_path), Processes(servers=(ServerProcess("s", 77, 1, argv),)), root


def put(path: Path, text: str = json.dumps(CONFIG)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_folder_below_the_servers_root(tmp_path: Path) -> None:
    collector, processes, root = node(tmp_path, "/models/mine")
    put(root / "models/mine/config.json")
    assert collector.read(processes, 0.0).fields == CONFIG
    assert collector.period_seconds == 3600


def test_a_folder_beside_the_server(tmp_path: Path) -> None:
    collector, processes, root = node(tmp_path, "mine")
    put(root / "mine/config.json")
    assert collector.read(processes, 0.0).path.endswith("/cwd/mine/config.json")


@pytest.mark.parametrize(
    ("environment", "hub"),
    [
        ({"HOME": "/home/u"}, "home/u/.cache/huggingface/hub"),
        ({"HF_HOME": "/hf"}, "hf/hub"),
        ({"HF_HUB_CACHE": "/cache", "HF_HOME": "/hf"}, "cache"),
    ],
)
def test_a_snapshot_in_the_hubs_cache(tmp_path: Path, environment: dict[str, str], hub: str) -> None:
    collector, processes, root = node(tmp_path, "me/mine", **environment)
    put(root / hub / "models--me--mine/snapshots/abc/config.json")
    assert collector.read(processes, 0.0).fields == CONFIG


def test_a_built_in_model_needs_no_file(tmp_path: Path) -> None:
    collector, processes, _ = node(tmp_path, "zai-org/GLM-5.2-FP8")
    with pytest.raises(NoData, match="built in"):
        collector.read(processes, 0.0)


def test_nothing_found_is_an_ordinary_state_and_asked_again(tmp_path: Path) -> None:
    collector, processes, _ = node(tmp_path, "me/mine")
    with pytest.raises(NoData, match=r"no config\.json of me/mine"):
        collector.read(processes, 0.0)
    assert collector.period_seconds == 60


@pytest.mark.parametrize(
    ("text", "says"), [("[1]", "no JSON object"), ("{", "no JSON"), ("x" * (MAX_BYTES + 1), "larger")]
)
def test_a_file_that_is_no_config_says_so(tmp_path: Path, text: str, says: str) -> None:
    collector, processes, root = node(tmp_path, "/m")
    put(root / "m/config.json", text)
    with pytest.raises(SourceError, match=says):
        collector.read(processes, 0.0)
