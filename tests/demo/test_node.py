from __future__ import annotations

import json
import mmap
import re
import stat
import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import psutil
import pytest

from ranktop.demo.launch import Launch
from ranktop.demo.launcher import DemoError, DemoNode
from ranktop.demo.sizes import pool_sizes
from ranktop.demo.state import resident_shmem_bytes
from ranktop.sample.demo_state import DemoState

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("demo0")]


def _get(node: DemoNode, path: str) -> bytes:
    with urllib.request.urlopen(node.url + path, timeout=10) as answer:
        return answer.read()


def _title(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()


def _ranks(node: DemoNode) -> list[int]:
    children = psutil.Process(node.pid).children()
    return [child.pid for child in children if _title(child.pid).startswith("sglang::scheduler")]


def _environment(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _mapped(size_bytes: int) -> int:
    return -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE


def test_the_main_process_shows_a_launch_line(node: DemoNode) -> None:
    port = int(node.url.rpartition(":")[2])
    assert _title(node.pid) == Launch().line(port)
    assert _environment(node.pid)["RANKTOP_DEMO_STATE"] == str(node.state_path)


def test_one_child_a_rank_and_a_detokenizer(node: DemoNode) -> None:
    titles = sorted(_title(child.pid) for child in psutil.Process(node.pid).children(recursive=True))
    assert titles == ["sglang::detokenizer", *(f"sglang::scheduler_TP{tp}" for tp in range(8))]
    for pid in _ranks(node):
        assert Path(_environment(pid)["PROMETHEUS_MULTIPROC_DIR"]).is_dir()


def test_each_rank_maps_the_planned_pools_and_all_pages_are_there(node: DemoNode) -> None:
    planned = [_mapped(pool_sizes().indexer_allocated_bytes), _mapped(pool_sizes().primary_bytes)]
    for pid in _ranks(node):
        shared = re.findall(r"^(\w+)-(\w+) rw-s \S+ \S+ \d+ +/dev/zero", Path(f"/proc/{pid}/maps").read_text(), re.M)
        mapped = sorted(int(end, 16) - int(start, 16) for start, end in shared)
        assert mapped == planned
        assert resident_shmem_bytes(pid) == sum(planned)


def test_the_log_tells_the_start_and_the_traffic(node: DemoNode) -> None:
    log = node.log_path.read_text()
    assert "server_args=ServerArgs(model_path='zai-org/GLM-5.2-FP8'" in log
    assert log.count("Allocating kv hierarchical KV host pool: 1024 tokens, 0.05 GB host memory.") == 8
    assert log.index("Load weight begin.") < log.index("Allocating kv") < log.index("The server is fired up")
    assert " TP0] Prefill batch, #new-seq: 1, " in log
    assert "Traceback" not in log


def test_pages_say_what_sglang_says(node: DemoNode) -> None:
    info = json.loads(_get(node, "/server_info"))
    assert info["version"] == "0.5.18"
    assert info["api_key"]
    assert info["internal_states"][0]["memory_usage"]["token_capacity"] == info["max_total_num_tokens"]
    assert json.loads(_get(node, "/model_info"))["architectures"] == ["GlmMoeDsaForCausalLM"]
    assert json.loads(_get(node, "/v1/loads"))["loads"][0]["max_total_num_tokens"] == info["max_total_num_tokens"]


@pytest.mark.parametrize("path", ["/health", "/health_generate", "/flush_cache", "/metrics/x", "/"])
def test_nothing_else_answers(node: DemoNode, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        _get(node, path)


def test_nothing_can_be_posted(node: DemoNode) -> None:
    with pytest.raises(urllib.error.HTTPError, match="501"):
        urllib.request.urlopen(node.url + "/metrics", data=b"{}", timeout=10)


def test_the_state_file_is_private_whole_and_simulated(node: DemoNode) -> None:
    assert stat.S_IMODE(node.state_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(node.state_path.parent.stat().st_mode) == 0o700
    state = msgspec.json.decode(node.state_path.read_bytes(), type=DemoState)
    assert state.host.source == state.gpus.source == "simulated"
    assert state.host.shmem_bytes == sum(resident_shmem_bytes(pid) for pid in _ranks(node))
    assert sorted(state.placements) == sorted(_ranks(node))
    assert {process.pid for gpu in state.gpus.gpus for process in gpu.processes or ()} == set(_ranks(node))


def test_two_nodes_do_not_meet(node: DemoNode) -> None:
    with DemoNode("cp1-fallback") as other:
        other.wait_ready(60.0)
        assert other.url != node.url
        assert other.directory != node.directory
        assert json.loads(_get(other, "/v1/loads"))
    assert node.alive()
    assert _get(node, "/metrics")


def test_a_taken_port_is_one_line(node: DemoNode) -> None:
    port = int(node.url.rpartition(":")[2])
    with pytest.raises(DemoError, match=f"port {port} on 127.0.0.1: Address already in use") as caught:
        DemoNode(port=port).__enter__()
    assert "\n" not in str(caught.value)


def test_an_unknown_scenario_names_the_known() -> None:
    with pytest.raises(DemoError, match=r"no scenario 'helthy'.*healthy.*rank-dies"):
        DemoNode("helthy")
