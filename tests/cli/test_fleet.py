"""`ranktop fleet` as a command: its text, its exit codes, and what it refuses to take on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ranktop.cli import main
from ranktop.cli.fleet import PASSWORD, TOKEN
from support.http_answers import answering, closed_port
from support.prometheus import pages


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main.COMMANDS, "fleet", "")
    for name in (TOKEN, f"{TOKEN}_FILE", PASSWORD):
        monkeypatch.delenv(name, raising=False)


def answer(*series: tuple[dict[str, str], float]) -> bytes:
    result: list[Any] = [{"metric": labels, "value": [1.0, str(value)]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def severity(value: float) -> bytes:
    return answer(
        ({"ranktop_part": "severity", "instance": "a:9472"}, value),
        ({"ranktop_part": "findings", "instance": "a:9472", "code": "NUMA-REMOTE", "severity": "breach"}, 2.0),
        ({"ranktop_part": "servers", "instance": "a:9472", "server": "s", "role": "prefill", "model": "m"}, 1.0),
    )


@pytest.mark.parametrize(("value", "code"), [(3.0, 1), (4.0, 1), (2.0, 0), (0.0, 0)])
def test_a_line_a_node_and_the_worst_as_exit_code(value: float, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200, severity(value)) as url:
        assert main.run(["fleet", "--prometheus", url, "--once"]) == code
    assert re.match(r"a:9472 +prefill +(breach|critical|warn|ok) +NUMA-REMOTE\(2\)\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("answers", "says"), [((200, answer()), "no series"), ((401, b""), TOKEN), ((503, b""), "503")]
)
def test_nothing_to_look_at_is_one_line(
    answers: tuple[int, bytes], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(*answers) as url:
        assert main.run(["fleet", "--prometheus", url, "--once"]) == 3
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_server_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["fleet", "--prometheus", closed_port(), "--once"]) == 3
    assert "refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--prometheus", "http://user:secret@127.0.0.1:9090"],
        ["--prometheus", "ftp://a"],
        ["--prometheus", "http://a", "--header", "Authorization: Bearer secret"],
        ["--prometheus", "http://a", "--header", "nothing"],
        ["--prometheus", "http://a", "--selector", "a=b"],
        ["--prometheus", "http://a", "--group", "a b"],
        [],
    ],
)
def test_wrong_usage_tells_no_secret(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["fleet", "--once", *arguments]) == 2
    assert "secret" not in capsys.readouterr().err


def test_scope_and_path_prefix_reach_the_server() -> None:
    asked: list[str] = []

    def page(path: str) -> bytes:
        asked.append(path)
        return severity(0.0)

    with pages(page) as address:
        command = ["fleet", "--once", "--prometheus", f"{address}/prometheus/", "--selector", 'cluster="a"']
        assert main.run([*command, "--group", "cluster"]) == 0
    (path,) = asked
    assert path.startswith("/prometheus/api/v1/query?")
    (query,) = parse_qs(urlsplit(path).query)["query"]
    assert 'max by (instance, cluster) (ranktop_severity{cluster="a"})' in query


def test_a_token_from_a_file_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(f"{TOKEN}_FILE", str(tmp_path / "none"))
    assert main.run(["fleet", "--once", "--prometheus", closed_port()]) == 2
