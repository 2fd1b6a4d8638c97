"""`check` on servers that answer badly: one clear line each, and the other sources go on."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext

import pytest

from support.command import ranktop
from support.http_answers import answering, closed_port, hanging

PAGE = b'sglang:num_running_reqs{tp_rank="0"} 1.0\n'


@pytest.mark.parametrize(
    ("server", "says"),
    [
        pytest.param(lambda: nullcontext(closed_port()), "refused", id="refuses"),
        pytest.param(hanging, "no complete answer", id="hangs"),
        pytest.param(lambda: answering(404), "404", id="404"),
        pytest.param(lambda: answering(401), "401", id="401"),
        pytest.param(lambda: answering(307), "307", id="307"),
        pytest.param(lambda: answering(200, b""), "empty", id="empty"),
        pytest.param(lambda: answering(200, PAGE[:20], promised_bytes=4000), "", id="truncated"),
        pytest.param(lambda: answering(200, b"\x00\xff<html>" * 100), "", id="garbage"),
    ],
)
def test_nothing_to_look_at_says_what_came_back(server: object, says: str) -> None:
    context: AbstractContextManager[str] = server()  # type: ignore[operator]
    with context as url:
        done = ranktop("check", "--url", url, "--window", "1", timeout_seconds=40)
    assert done.returncode == 3, done
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert done.stdout == ""


def test_a_page_alone_is_looked_at() -> None:
    with answering(200, PAGE) as url:
        done = ranktop("check", "--json", "--url", url, "--window", "1", timeout_seconds=40)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    states = {source["name"]: source["state"] for source in document["sources"]}
    assert states["metrics"] == "ok"
    assert states["server"] == "error", "the same page is no /server_info"
    assert states["hostmem"] == "ok", "the other sources go on"
