"""What people paste as a launch, and what a server reports."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktop.plan import (
    LaunchRequest,
    PlanError,
    launch_from_fields,
    launch_from_server_info,
    parse_launch,
    render_launch,
)
from ranktop.plan.field_names import BOOLEAN_FIELDS, FLOAT_FIELDS, INTEGER_FIELDS, LIST_FIELDS, TEXT_FIELDS
from ranktop.plan.flags import LEGACY, is_secret
from ranktop.plan.words import split_words

SIZED = {"tp_size": 8, "enable_hierarchical_cache": True, "hicache_size": 64}

FLAGS = "--tp 8 --enable-hierarchical-cache --hicache-size 64"
MODULE = f"python -m sglang.launch_server {FLAGS}"
PASTED = {
    "module": MODULE,
    "interpreter path": f"/opt/venv/bin/python3.11 -m sglang.launch_server {FLAGS}",
    "serve": "sglang serve --tensor-parallel-size 8 --enable-hierarchical-cache --hicache-size=64",
    "bare flags": FLAGS,
    "continuations": MODULE.replace(" --", " \\\n  --").replace(" \\\n", " \\  \n", 1),
    "comments": f"# canary\n{MODULE.replace('8 ', '8 ' + chr(92) + chr(10) + ' # L2 only' + chr(10))} # GB",
    "docker": "docker run --gpus all --shm-size 32g --ipc=host -p 30000:30000 --device /dev/infiniband "
    f"lmsysorg/sglang:v0.5.18 {MODULE}",
    "docker with an entry point": f"docker run --gpus all --device /dev/x image {FLAGS}",
    "shell": f"bash -lc 'exec {MODULE}'",
    "numactl": f"numactl -N 0 {MODULE}",
    "redirected": f"{MODULE} 2>&1 | tee server.log",
    "yaml list": '- --tp-size\n- "8"\n- --enable-hierarchical-cache\n- --hicache-size=64\n',
    "json list": '["--tp", "8", "--enable-hierarchical-cache", "--hicache-size", "64"]',
    "pod": "spec:\n  containers:\n  - name: side\n    args: [--verbose]\n  - name: server\n"
    "    command: [python3, -m, sglang.launch_server]\n"
    "    args:\n    - --tp-size\n    - '8'\n    - --enable-hierarchical-cache\n    - --hicache-size=64\n",
    "pod with a shell": f"containers:\n- command: ['sh', '-c']\n  args:\n  - |\n    {MODULE}\n",
    "abbreviated": "python -m sglang.launch_server --tp 8 --enable-hierarchical --hicache-siz 64",
}


@pytest.mark.parametrize("text", PASTED.values(), ids=PASTED)
def test_pasted(text: str) -> None:
    request = parse_launch(text)
    assert request.flags == SIZED
    assert request.unknown_flags == ()


def test_words_and_one_title_are_the_same() -> None:
    words = PASTED["module"].split()
    assert parse_launch(words) == parse_launch([" ".join(words)]) == parse_launch(PASTED["module"])


def test_a_quoted_launch_with_more_flags() -> None:
    assert parse_launch([MODULE, "--hicache-size", "32"]).flags == SIZED | {"hicache_size": 32}


def test_a_name_inside_json_is_no_launch() -> None:
    assert parse_launch(["--tp", "2", "--x", '{"a": "sglang.launch --b c"}']).flags == {"tp_size": 2}


def test_json_in_a_title_has_lost_its_quotes() -> None:
    title = 'python -m sglang.launch_server --hicache-storage-backend-extra-config {"prefetch_threshold": 512} --tp 4'
    request = parse_launch([title])
    assert json.loads(request.flags["hicache_storage_backend_extra_config"]) == {"prefetch_threshold": 512}
    assert request.flags["tp_size"] == 4


def test_environment_is_kept_where_a_plan_may_need_it() -> None:
    request = parse_launch(
        "export HF_TOKEN=hf_secret; docker run -e SGLANG_HUGEPAGE_SIZE=2MB --env CUDA_VISIBLE_DEVICES=0,1 image "
        "python -m sglang.launch_server --tp 2"
    )
    assert request.environment == {"SGLANG_HUGEPAGE_SIZE": "2MB", "CUDA_VISIBLE_DEVICES": "0,1"}


def test_unknown_flags_are_kept_and_listed() -> None:
    request = parse_launch("--tp 2 --frobnicate 3 --new-thing --other=4 --dp 2")
    assert request.unknown_flags == ("--frobnicate=3", "--new-thing", "--other=4")
    assert request.flags == {"tp_size": 2, "dp_size": 2}


def test_lists_take_words_up_to_the_next_flag() -> None:
    assert parse_launch("--numa-node 0 0 1 1 --tp 4").flags == {"numa_node": ("0", "0", "1", "1"), "tp_size": 4}


SECRETS = "--api-key sk-1 --admin-api-key=sk-2 --ssl-keyfile-password sk-3 --my-auth-token sk-4"


def test_secrets_do_not_enter() -> None:
    config = '{"api_key": "sk-5", "prefetch_threshold": 512}'
    request = parse_launch(
        f"{SECRETS} --model-path https://user:sk-6@host/m --hicache-storage-backend-extra-config '{config}' --tp 2"
    )
    assert "sk-" not in repr(request)
    assert request.flags["model_path"] == "https://host/m"
    report = {"api_key": "sk-1", "admin_api_key": "sk-2", "tp_size": 2, "hicache_storage_backend_extra_config": config}
    for request in (launch_from_server_info(report), launch_from_fields(report, "log")):
        assert "sk-" not in repr(request)
        assert request.flags["tp_size"] == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--tp-size eight", ("--tp-size", "'eight'", "whole number")),
        ("--tp-size 2.5", ("--tp-size", "'2.5'", "whole number")),
        ("--hicache-size lots", ("--hicache-size", "'lots'", "number")),
        ("--hicache-size", ("--hicache-size", "no value")),
        ("--tp-size --dp-size 2", ("--tp-size", "no value")),
    ],
)
def test_impossible_values(line: str, words: tuple[str, ...]) -> None:
    with pytest.raises(PlanError) as error:
        parse_launch(line)
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)


def test_a_file_by_mistake() -> None:
    with pytest.raises(PlanError, match="characters"):
        parse_launch("x" * (2 << 20))


@pytest.mark.parametrize(
    "text",
    [
        "args: &a\n- *a\n- --tp=2\n",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\nargs: [--tp=2, *d]\n",
        "args: " + "[" * 5000,
        "- " * 3000,
    ],
    ids=["cycle", "aliases", "deep", "dashes"],
)
def test_hostile_yaml_ends(text: str) -> None:
    with contextlib.suppress(PlanError):
        assert isinstance(parse_launch(text), LaunchRequest)


def test_unclosed_quotes_and_braces_end_with_the_text() -> None:
    assert split_words("--a 'b c") == ["--a", "b c"]
    assert split_words("--a {b c") == ["--a", "{b", "c"]
    assert split_words('--a "b \\"c\\""') == ["--a", 'b "c"']


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "version", "tokens"),
    [
        ("server_info_0.5.18_tp8_hicache120_l2.json", "0.5.18", 432_000),
        ("server_info_0.5.23_pd_prefill_tp4cp4_layersplit.json", "0.5.23", 432_000),
    ],
)
def test_server_info(shared: Path, name: str, version: str, tokens: int) -> None:
    report = json.loads((shared / "samples" / name).read_text())
    request = launch_from_server_info(report)
    assert (request.sglang_version, request.device_tokens, request.resolved) == (version, tokens, True)
    assert not any(is_secret(name) for name in request.flags)
    assert "SAMPLE" not in repr(request)
    assert request.flags["hicache_mem_layout"] == "page_first_direct"


NOT_VALUES = frozenset({"round-robin-split", "in-seq-split", "&&", "||", "|", ";", "&", ">", ">>", "<", "&>", "2>"})
"""Old values that are renamed, and words that end a shell command."""

_TEXT = st.text(
    st.characters(codec="ascii", min_codepoint=33, exclude_characters="{}[]"), min_size=1, max_size=12
).filter(lambda text: not text.startswith("-") and "://" not in text and text not in NOT_VALUES)
_SAFE_TEXT_FIELDS = sorted(name for name in TEXT_FIELDS if not is_secret(name) and name not in LEGACY)


def _flags() -> st.SearchStrategy[dict[str, Any]]:
    def some(fields: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        return st.dictionaries(st.sampled_from(fields), values, max_size=4)

    groups = (
        some(sorted(BOOLEAN_FIELDS - LEGACY.keys()), st.just(True)),
        some(sorted(INTEGER_FIELDS), st.integers(-(10**9), 10**9)),
        some(
            sorted(FLOAT_FIELDS), st.integers(0, 10**6) | st.floats(0.001, 1e6, allow_nan=False).filter(lambda x: x % 1)
        ),
        some(_SAFE_TEXT_FIELDS, _TEXT),
        some(sorted(LIST_FIELDS), st.lists(_TEXT, min_size=1, max_size=3).map(tuple)),
    )
    return st.tuples(*groups).map(lambda parts: {name: value for part in parts for name, value in part.items()})


_UNKNOWN = st.lists(
    st.sampled_from(["--frobnicate", "--frobnicate=3", "--frobnicate=a b", "--zz-top=x=y"]), max_size=2, unique=True
).map(tuple)
_ENVIRONMENT = st.dictionaries(
    st.sampled_from(["SGLANG_HUGEPAGE_SIZE", "CUDA_VISIBLE_DEVICES", "MC_X"]),
    _TEXT.filter(lambda text: not text.endswith(";")),
    max_size=2,
)


@settings(max_examples=150, deadline=None)
@given(_flags(), _UNKNOWN, _ENVIRONMENT)
def test_parse_of_render_is_the_launch(
    flags: dict[str, Any], unknown: tuple[str, ...], environment: dict[str, str]
) -> None:
    request = LaunchRequest(flags, unknown, environment)
    assert parse_launch(render_launch(request)) == request


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from(["--tp", "8", "--", "-", "'", '"', "{", "\\", "#", "\n", "--x="])).map(" ".join)
)
def test_any_text_is_a_launch_or_one_line(text: str) -> None:
    with contextlib.suppress(PlanError):
        assert isinstance(parse_launch(text), LaunchRequest)
