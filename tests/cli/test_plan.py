"""`ranktop plan` as a command: the contract's JSON, the table, bad input, what it imports."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ranktop.cli.main import run
from ranktop.plan import compute_plan, parse_launch

LAUNCH = (
    "python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 120 --kv-cache-dtype fp8_e4m3"
)
LAYER_SPLIT = (
    "--tp 4 --disaggregation-mode prefill --enable-prefill-cp --cp-strategy interleave --enable-dsa-cache-layer-split"
)


def plan(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(["plan", *words])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, captured.out


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    return json.loads(plan(capsys, "--json", *words)[1])


def test_json_is_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--", LAUNCH)
    assert found["schema"] == 1
    assert found["sglang"] == {"version": "0.5.18", "profile": "0.5.18", "exact": True}
    assert (
        found["model"].items()
        >= {
            "name": "glm-5.2",
            "layers": 78,
            "mtp_layers": 1,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "index_head_dim": 128,
            "index_layers": 21,
        }.items()
    )
    assert (
        found["launch"].items()
        >= {
            "role": "unified",
            "tp_size": 8,
            "pp_size": 1,
            "dp_size": 1,
            "attn_cp_size": 1,
            "dcp_size": 1,
            "page_size": 64,
            "kv_cache_dtype": "fp8_e4m3",
            "hicache": True,
            "hicache_size_gb": 120,
            "hicache_ratio": None,
            "write_policy": "write_through",
            "io_backend": "kernel",
            "mem_layout": "page_first",
            "storage_backend": None,
            "layer_split": False,
            "speculative": None,
            "rewritten": [],
            "unknown_flags": [],
        }.items()
    )
    assert "arch sm90: not given" in found["launch"]["assumed"]
    rank = found["ranks"][0]
    assert rank.items() >= {"rank": "TP0", "tp": 0, "pp": 0, "dp": 0, "cp": 0, "cuda_index": 0}.items()
    assert rank["layers"] == {"start": 0, "end": 78, "owned": 78}
    assert (
        rank["host"].items()
        >= {
            "row_bytes": 656,
            "layers": 78,
            "index_layers": 78,
            "bytes_per_token": 51168,
            "index_bytes_per_token": 10296,
            "tokens": 2345216,
            "pages": 36644,
            "primary_bytes": 120000012288,
            "indexer_bytes": 24146343936,
            "indexer_allocated_bytes": 24147002880,
            "combined_bytes": 144146356224,
            "allocated_bytes": 144147015168,
            "draft_bytes": 0,
            "bookkeeping_bytes": 46904320,
        }.items()
    )
    assert (
        rank["device"].items()
        >= {
            "bytes_per_token": 61464,
            "layer_equivalents": 78,
            "scratch_layers": 0,
            "staging_bytes": 251756544,
        }.items()
    )
    assert found["node"] == {
        "ranks": 8,
        "combined_bytes": 1153170849792,
        "allocated_bytes": 1153176121344,
        "reserve_bytes": 10737418240,
        "per_rank_gate_bytes": 154883774464,
        "surely_fits_bytes": 1163912880640,
        "surely_fails_below_bytes": 994883860480,
    }
    assert found["layer_split"] == {
        "active": False,
        "ranges": [[0, 78]],
        "max_owned": 78,
        "layer_equivalents": 78,
        "reduction_percent": 0.0,
        "reasons": [],
    }
    assert found["l3"].items() >= {"threshold_tokens": 256, "policy": "timeout", "cache": "UnifiedRadixCache"}.items()
    assert found["l3"]["deadline_seconds"]["8192"] == 3.0
    assert {"rule", "verdict", "message"} <= found["eligibility"][0].keys()
    assert [finding["code"] for finding in found["findings"]] == ["PLAN-SIZE-WITHOUT-INDEXER", "PLAN-METRICS-OFF"]


def test_text_spells_the_multiplication_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = plan(capsys, "--", LAUNCH)
    assert code == 0
    assert max(map(len, text.splitlines())) <= 80
    squeezed = " ".join(text.split())
    for words in (
        "GB GiB row 656 B",
        "2,345,216 tokens x 51,168 B 120.00 111.76",
        "36,645 pages x 78 x 8,448 B 24.15 22.49",
        "8 x 144.19 GB 1,153.55 1,074.33",
        "GB is 1e9 bytes, GiB is 2^30",
    ):
        assert words in squeezed, words


WIDTHS = [
    ("--", LAUNCH),
    ("--memory", "900", "--nodes", "2", "--", LAUNCH),
    ("--device-tokens", "400000", "--", LAYER_SPLIT, "--enable-hierarchical-cache", "--hicache-size", "64"),
    ("--sglang", "0.5.23", "--", LAYER_SPLIT, "--enable-hierarchical-cache", "--hicache-size", "64"),
    ("--model", "qwen3-32b", "--", "--tp", "8", "--enable-hierarchical-cache"),
    ("--sweep", "hicache-size=32,64,96,120", "--memory", "1200", "--", LAUNCH),
    ("--", "--tp", "2"),
]


@pytest.mark.parametrize("words", WIDTHS)
def test_80_columns(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    words = tuple(part for word in words for part in (word.split() if word.startswith("--tp ") else [word]))
    _, text = plan(capsys, *words)
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()


def test_rejected_launch_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = plan(capsys, "--", *LAYER_SPLIT.replace("prefill --e", "decode --e").split())
    assert code == 1
    assert "PLAN-REJECTED" in text
    assert "not supported on decode workers" in " ".join(text.split())


def test_memory_and_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(capsys, "--memory", "1511", "--nodes", "2", "--", LAUNCH)[0] == 0
    found = document(capsys, "--memory", "900", "--nodes", "2", "--", LAUNCH)
    codes = [finding["code"] for finding in found["findings"]]
    assert codes.count("PLAN-NODE-OVERCOMMIT") == 2
    assert "PLAN-HOST-OVERCOMMIT" in codes
    assert found["fit"]["flag"].startswith("--hicache-size ")


def test_bare_flags_need_no_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        document(capsys, "--tp-size", "2", "--enable-hierarchical-cache", "--hicache-size", "8")["node"]["ranks"] == 2
    )


@pytest.mark.parametrize("form", ["server_info", "repr", "dict", "pod"])
def test_from_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    values = {"tp_size": 4, "enable_hierarchical_cache": True, "hicache_size": 64, "api_key": "sk-1"}
    text = {
        "server_info": json.dumps({**values, "version": "0.5.18"}),
        "repr": f"[2026-11-29 09:00:00] server_args=ServerArgs({', '.join(f'{k}={v!r}' for k, v in values.items())})",
        "dict": f"[2026-11-29 09:00:00] server_args={values!r}",
        "pod": "args:\n- --tp-size\n- '4'\n- --enable-hierarchical-cache\n- --hicache-size=64\n- --api-key=sk-1\n",
    }[form]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    found = document(capsys, "-")
    assert (found["launch"]["tp_size"], found["launch"]["hicache_size_gb"]) == (4, 64)
    assert "sk-1" not in json.dumps(found)


def test_standard_input_of_bytes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"--tp 2 --served-model-name \xff\xfe")))
    assert document(capsys, "-")["node"]["ranks"] == 2


BAD: list[tuple[tuple[str, ...], str]] = [
    ((), "no launch given"),
    (("--", "--tp-size", "eight"), "--tp-size 'eight': a whole number is accepted"),
    (("--", "--hicache-size", "-3", "--enable-hierarchical-cache"), "--hicache-size -3"),
    (("--", "--tp", "8", "--attn-cp-size", "3"), "not divisible"),
    (("--model", "gpt-2", "--", "--tp", "1"), "--model 'gpt-2'"),
    (("--model-config", "/nonexistent.json", "--", "--tp", "1"), "--model-config"),
    (("--arch", "sm70", "--", "--tp", "1"), "--arch 'sm70'"),
    (("--sglang", "newest", "--", "--tp", "1"), "--sglang 'newest'"),
    (("--nodes", "2", "--", "--tp", "1"), "--nodes"),
    (("--memory", "-5", "--", "--tp", "1"), "--memory"),
    (("--sweep", "frobnicate", "--", "--tp", "1"), "--sweep 'frobnicate'"),
    (("--sweep", "tp-size=2,x", "--", "--tp", "1"), "--tp-size 'x'"),
    (("--", '{"tp_size": '), "JSON"),
    (("--", "vllm", "serve", "x"), "no launch of SGLang in 'vllm serve x'"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str) -> None:
    assert run(["plan", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "content", [b" " * (50 << 20), b"\x00\xff garbage", b"{}", b"[]"], ids=["50 MB", "garbage", "{}", "[]"]
)
def test_bad_configs_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert run(["plan", "--model-config", str(path), "--", "--tp", "1"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(path) in told


def test_model_config(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}))
    assert document(capsys, "--model-config", str(path), "--", "--tp", "8")["model"]["attention"] == "mla"


def test_text_from_outside_is_no_terminal_control(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    config = {
        "num_hidden_layers": 61,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "model_type": "\x1b[31m" + "x" * 200,
    }
    path.write_text(json.dumps(config))
    _, text = plan(capsys, "--model-config", str(path), "--", "--tp", "2", "--fro\x1b]0;bnicate\x07")
    assert all(line.isprintable() and len(line) <= 80 for line in text.splitlines())


def test_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--sweep", "hicache-size=32,120,200", "--memory", "1200", "--nodes", "2", "--", LAUNCH)
    assert [step["value"] for step in found["steps"]] == [32, 120, 200]
    assert found["steps"][1]["tokens"] == 2345216
    assert found["steps"][0]["findings"] == []
    assert "PLAN-HOST-OVERCOMMIT" in found["steps"][2]["findings"]
    text = plan(capsys, "--sweep", "hicache-size=32,200", "--memory", "1200", "--", LAUNCH)[1]
    assert text.splitlines()[1].endswith("yes")
    assert text.splitlines()[2].endswith("no: host")


def test_sweep_of_a_ratio_drops_the_size(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--device-tokens", "1000", "--sweep", "hicache-ratio=1,2", "--", LAUNCH)
    assert [step["tokens"] for step in found["steps"]] == [1024, 2048]


def test_controls_are_the_audits(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--controls", "--", *LAYER_SPLIT.split())["controls"]
    expected = {control["change"]: control["expected"] for control in found}
    for change in (
        "--disaggregation-mode null",
        "--disaggregation-mode decode, without --enable-prefill-cp",
        "--cp-strategy zigzag",
        "--disaggregation-transfer-backend nixl",
        "--disaggregation-transfer-backend mori",
        "--pp-size 2",
    ):
        assert expected[change].startswith("Startup rejection: --enable-dsa-cache-layer-split"), change
    assert expected["--tp-size 1, --attn-cp-size 1"].startswith(
        "The server may start: the attention CP size resolves to 1"
    )
    assert "a tiny model without DSA" in expected


def test_controls_of_hicache_paste_back(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--controls", "--", LAUNCH)["controls"]
    for control in found:
        code = run(["plan", "--json", "--", control["launch"]])
        assert code == (1 if control["expected"].startswith(("Startup", "The server may start: HiCache wins")) else 0)
        capsys.readouterr()
    assert "No controls" in plan(capsys, "--controls", "--", "--tp", "2")[1]


HEAVY = "textual rich pynvml http requests prometheus_client psutil yaml asyncio collectors tui sqlite3 pathlib"


def test_plan_imports_no_screen_no_nvml_no_http() -> None:
    script = (
        "import sys\n"
        "from ranktop.cli.main import run\n"
        f"code = run(['plan', '--memory', '1511', '--nodes', '2', '--', {LAUNCH!r}])\n"
        f"heavy = set({HEAVY!r}.split())\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--tp 8 --hicache-size 120", "ignored  --hicache-size: does nothing without --enable-hierarchical-cache"),
        ("--tp 8 --hicach-size 120", "unknown  --hicach-size=120 (did you mean --hicache-size?)"),
        ("--tp 8 --quite-another", "unknown  --quite-another"),
    ],
)
def test_what_is_easily_got_wrong_is_said(capsys: pytest.CaptureFixture[str], words: str, told: str) -> None:
    assert run(["plan", "--", *words.split()]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert " ".join(told.split()) in " ".join(shown)
    assert ("did you mean" in " ".join(shown)) == ("did you mean" in told)


def test_a_size_with_hicache_or_on_a_decode_server_does_something() -> None:
    for more in ("--enable-hierarchical-cache", "--disaggregation-mode decode"):
        plan = compute_plan(parse_launch(f"--tp 8 --hicache-size 120 {more}"))
        assert not any(row.rule == "--hicache-size" for row in plan.eligibility)
