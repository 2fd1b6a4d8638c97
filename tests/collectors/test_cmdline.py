from __future__ import annotations

import pytest

from collectors import cmdline
from ranktop.sample import RankTag


@pytest.mark.parametrize(
    ("title", "tag", "text"),
    [
        ("sglang::scheduler", RankTag(), "TP0"),
        ("sglang::scheduler_TP3", RankTag(tp=3), "TP3"),
        ("sglang::scheduler_DP0_TP3_EP3", RankTag(dp=0, tp=3, ep=3), "DP0 TP3 EP3"),
        (
            "sglang::scheduler_DP1_PP0_ATTN_CP3_MOE_DP1_TP15_EP2",
            RankTag(dp=1, pp=0, cp=3, moe_dp=1, tp=15, ep=2),
            "DP1 PP0 ATTN_CP3 MOE_DP1 TP15 EP2",
        ),
    ],
)
def test_titles_of_ranks(title: str, tag: RankTag, text: str) -> None:
    assert cmdline.rank_tag(title) == tag
    assert str(tag) == text


@pytest.mark.parametrize(
    "title",
    [
        "sglang::detokenizer",
        "sglang::data_parallel_controller",
        "sglang::scheduler_TP",
        "sglang::scheduler_XX3",
        "sglang::scheduler_TP3 ",
        "sglang::scheduler_TP3\n",
        "grep sglang::scheduler_TP3",
        "",
    ],
)
def test_titles_that_are_no_rank(title: str) -> None:
    assert cmdline.rank_tag(title) is None


LAUNCHES = [
    b"python\0-m\0sglang.launch_server\0--tp-size\08\0",
    b"/usr/bin/python3.12\0-u\0-m\0sglang.launch_server\0",
    b"/opt/venv/bin/python3\0/opt/venv/bin/sglang\0serve\0--model-path\0x\0",
    b"python3\0-m\0sglang\0serve\0",
    b"sglang\0serve\0",
    b"python3\0-X\0dev\0-W\0ignore\0-m\0sglang.launch_server\0",
    b"python -m sglang.launch_server --tp-size 8 --hicache-size 0.05\0\0\0\0",
    b"python3\0/sgl-workspace/sglang/launch_server.py\0",
]
NO_LAUNCHES = [
    b"bash\0-c\0python -m sglang.launch_server --tp 8\0",
    b"docker\0run\0lmsysorg/sglang\0python3\0-m\0sglang.launch_server\0",
    b"python3\0-c\0from multiprocessing.spawn import spawn_main; spawn_main(5)\0--multiprocessing-fork\0",
    b"python3\0-m\0sglang.bench_serving\0",
    b"grep\0sglang.launch_server\0",
    b"sglang\0generate\0",
    b"python3\0",
    b"",
    b"\0",
]


@pytest.mark.parametrize("raw", LAUNCHES)
def test_launches(raw: bytes) -> None:
    assert cmdline.is_launch(cmdline.split_argv(raw))


@pytest.mark.parametrize("raw", NO_LAUNCHES)
def test_carriers_of_a_launch_are_none(raw: bytes) -> None:
    assert not cmdline.is_launch(cmdline.split_argv(raw))


@pytest.mark.parametrize(
    ("flags", "url"),
    [
        ("", "http://127.0.0.1:30000"),
        ("--port 31000", "http://127.0.0.1:31000"),
        ("--host=0.0.0.0 --port=31000", "http://127.0.0.1:31000"),
        ("--host :: --port 1", "http://127.0.0.1:1"),
        ("--host fd00::1 --port 1", "http://[fd00::1]:1"),
        ("--port 1 --port 2", "http://127.0.0.1:2"),
        ("--port many", "http://127.0.0.1:30000"),
        (f"--port {'9' * 5000}", "http://127.0.0.1:30000"),
        ("--port ²", "http://127.0.0.1:30000"),
        ("--host 10.0.0.7 --ssl-certfile c.pem", "https://10.0.0.7:30000"),
    ],
)
def test_endpoint(flags: str, url: str) -> None:
    assert cmdline.url_of(("python", "-m", "sglang.launch_server", *flags.split())) == url


@pytest.mark.parametrize(
    ("argv", "kept"),
    [
        (("--api-key", "s3cret", "--tp", "8"), ("--api-key", "(dropped)", "--tp", "8")),
        (("--admin-api-key=s3cret",), ("--admin-api-key=(dropped)",)),
        (("--ssl-keyfile-password", "s3cret"), ("--ssl-keyfile-password", "(dropped)")),
        (("--api-key", "--tp", "8"), ("--api-key", "--tp", "8")),
        (("--speculative-num-draft-tokens", "4"), ("--speculative-num-draft-tokens", "4")),
        (("--max-total-tokens", "4096"), ("--max-total-tokens", "4096")),
        (("--otlp", "http://me:s3cret@host/x"), ("--otlp", "http://host/x")),
        (
            ("--hicache-storage-backend-extra-config", '{"ak": {"secret_key": "s3cret"}, "bucket": "b"}'),
            ("--hicache-storage-backend-extra-config", '{"ak": {}, "bucket": "b"}'),
        ),
        (("--extra", '{"password": s3cret'), ("--extra", "(dropped)")),
    ],
)
def test_secrets_are_dropped(argv: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert cmdline.drop_secrets(argv) == kept
