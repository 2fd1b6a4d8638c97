"""Keys planted in every input are in no output: screen, check, plain, recording, export, report, bundle, exporter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from support.command import RANKTOP
from tui.app import RanktopApp
from tui.draw.glyphs import UNICODE
from tui.themes import load_theme
from tui.timekeys import LiveTime
from tui.widgets.lines import Lines

KEYS = {
    "launch": "PLANTED-launch-4f1b",
    "launch_equals": "PLANTED-equals-9a7c",
    "launch_url": "PLANTED-launchurl-88d0",
    "environment": "PLANTED-environ-31ee",
    "info": "PLANTED-info-77aa",
    "info_nested": "PLANTED-nested-5c5c",
    "info_url": "PLANTED-infourl-2b2b",
    "log": "PLANTED-log-e0e0",
    "log_dict": "PLANTED-logdict-1d1d",
    "own": "PLANTED-own-key-6e6e",
    "label": "PLANTED-label-f00d",
}
TREE = Path(__file__).parents[1] / "collectors" / "process_tree.py"


class _Server(BaseHTTPRequestHandler):
    """SGLang's answers with keys in them."""

    def do_GET(self) -> None:
        config = json.dumps({"master": "a:1", "access_key": KEYS["info_nested"]})
        answers = {
            "/metrics": 'sglang:num_running_reqs{tp_rank="0"} 3.0\n'
            f'sglang:num_queue_reqs{{tp_rank="0",api_key="{KEYS["label"]}"}} 0.0\n',
            "/server_info": json.dumps(
                {
                    "version": "0.5.18",
                    "tp_size": 2,
                    "model_path": f"https://me:{KEYS['info_url']}@models.example/GLM-5.2-FP8",
                    "api_key": KEYS["info"],
                    "admin_api_key": KEYS["info"],
                    "hicache_storage_backend_extra_config": config,
                    "status": "ready",
                }
            ),
            "/model_info": json.dumps({"model_path": f"https://me:{KEYS['info_url']}@models.example/GLM-5.2-FP8"}),
        }
        body = answers.get(self.path.partition("?")[0], "{}").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A server with keys wherever keys can be: its main pid, and a folder for outputs."""
    folder = tmp_path_factory.mktemp("secrets")
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    launch = (
        f"python -m sglang.launch_server --model-path GLM-5.2-FP8 --tp-size 2 --port {http.server_port} "
        f"--api-key {KEYS['launch']} --admin-api-key={KEYS['launch_equals']} "
        f"--tokenizer-path https://me:{KEYS['launch_url']}@models.example/tokenizer"
    )
    log = folder / "server.log"
    log.write_text(
        f"[2026-11-29 09:00:00] server_args=ServerArgs(model_path='GLM-5.2-FP8', tp_size=2, api_key='{KEYS['log']}')\n"
        f"[2026-11-29 09:00:01] server_args={{'tp_size': 2, 'admin_api_key': '{KEYS['log_dict']}'}}\n"
        f"[2026-11-29 09:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        f"ValueError: bad key --api-key {KEYS['log']}\n"
        "[2026-11-29 09:02:30] The server is fired up and ready to roll!\n"
    )
    children = [{"title": f"sglang::scheduler_TP{tp}"} for tp in range(2)]
    with log.open("a") as stderr:
        process = subprocess.Popen(
            [sys.executable, str(TREE), json.dumps({"title": launch, "children": children})],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=os.environ | {"SGLANG_API_KEY": KEYS["environment"], "HF_TOKEN": KEYS["environment"]},
        )
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    yield process.pid, folder
    process.kill()
    process.wait()
    process.stdout.close()
    http.shutdown()
    http.server_close()


def _run(folder: Path, *arguments: str, codes: tuple[int, ...] = (0, 1)) -> bytes:
    """Both streams of a command that has a key of its own, and sees none of the user's files."""
    done = subprocess.run(
        [str(RANKTOP), *arguments],
        capture_output=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"RANKTOP_API_KEY": KEYS["own"], "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")},
        check=False,
    )
    assert done.returncode in codes, done.stderr
    return done.stdout + done.stderr


def _recorded(pid: int, folder: Path) -> Path:
    path = folder / "node.rtop"
    if not path.exists():
        _run(folder, "record", "-o", str(path), "--pid", str(pid), "--duration", "4", "--scrape-interval", "1")
    return path


def _bundle(pid: int, folder: Path) -> bytes:
    path = folder / "node.tar.gz"
    told = _run(folder, "bundle", "-o", str(path), "--pid", str(pid), "--window", "1")
    with tarfile.open(path) as archive:
        members = [archive.extractfile(member) for member in archive]
        return told + b"".join(member.read() for member in members if member is not None)


def _report(pid: int, folder: Path) -> bytes:
    path = folder / "node.html"
    return _run(folder, "report", str(_recorded(pid, folder)), "-o", str(path)) + path.read_bytes()


def _check(*options: str) -> Callable[[int, Path], bytes]:
    return lambda pid, folder: _run(folder, "check", *options, "--pid", str(pid), "--window", "1")


_LAUNCH = (
    "python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp-size 2 --hicache-size 1 "
    f"--enable-hierarchical-cache --api-key {KEYS['launch']} --admin-api-key={KEYS['launch_equals']}"
)


def _manifest(_: int, folder: Path) -> bytes:
    path = folder / "canary.yaml"
    return _run(folder, "plan", "--manifest", str(path), "--overwrite", "--", _LAUNCH) + path.read_bytes()


OUTPUTS: dict[str, Callable[[int, Path], bytes]] = {
    "check": _check(),
    "check --json": _check("--json"),
    "check --markdown": _check("--markdown"),
    "recording": lambda pid, folder: _recorded(pid, folder).read_bytes(),
    "export": lambda pid, folder: _run(folder, "export", str(_recorded(pid, folder)), "--format", "jsonl"),
    "report": _report,
    "bundle": _bundle,
    "export csv": lambda pid, folder: _run(folder, "export", str(_recorded(pid, folder))),
    "doctor": lambda pid, folder: _run(folder, "doctor"),
    "why": lambda pid, folder: _run(folder, "why", "--log", str(folder / "server.log"), codes=(0, 1, 3)),
    "inspect": lambda pid, folder: _run(folder, "inspect", str(folder / "server.log"), codes=(0, 1, 3)),
    "inspect --json": lambda pid, folder: _run(
        folder, "inspect", "--json", str(folder / "server.log"), codes=(0, 1, 3)
    ),
    "plan": lambda pid, folder: _run(folder, "plan", "--", _LAUNCH),
    "plan --manifest": _manifest,
    "preflight": lambda pid, folder: _run(folder, "preflight", "--", _LAUNCH),
    "state": lambda pid, folder: b"".join(
        path.read_bytes() for path in (folder / "state").rglob("*") if path.is_file()
    ),
}


@pytest.mark.parametrize("output", list(OUTPUTS))
def test_no_key_is_in(output: str, node: tuple[int, Path]) -> None:
    found = OUTPUTS[output](*node)
    assert [name for name, key in KEYS.items() if key.encode() in found] == []


def test_what_the_keys_stood_beside_is_there(node: tuple[int, Path]) -> None:
    """So that the test above cannot hold because nothing was read."""
    document = json.loads(OUTPUTS["check --json"](*node))
    assert document["servers"][0]["version"] == "0.5.18"
    assert [rank["rank"] for rank in document["ranks"]] == ["TP0", "TP1"]
    assert {source["name"]: source["state"] for source in document["sources"]}["serverlog"] == "ok"


def _raw(recording: Path) -> Generator[str]:
    from ranktop.recording.reader import Recording

    with Recording(str(recording)) as opened:
        yield repr(opened.meta)
        yield from (repr(recorded.sample) for recorded in opened.samples())
        yield repr(opened.events())


def test_no_key_is_in_what_a_recording_holds(node: tuple[int, Path]) -> None:
    """Its chunks are compressed: bytes alone would not tell."""
    text = "".join(_raw(_recorded(*node)))
    assert "GLM-5.2-FP8" in text
    assert [name for name, key in KEYS.items() if key in text] == []


async def test_no_key_is_on_any_screen(node: tuple[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler

    monkeypatch.setenv("RANKTOP_API_KEY", KEYS["own"])
    options = NodeOptions(pids=(node[0],), scrape_seconds=1.0)
    feed = make_feed(options)
    feed.start()
    app = RanktopApp(LiveTime(feed, make_reconciler(options).update), [load_theme("night")], UNICODE)
    shown = ""
    async with app.run_test(size=(200, 60)) as pilot:
        await pilot.pause(2.0)
        for key in ("1", "2", "3", "4", "5", "6", "7", "8", "9", "1", "enter"):
            await pilot.press(key)
            await pilot.pause(0.1)
            for part in app.screen_stack[0].query(Lines):
                shown += "".join(s.text for y in range(part.size.height) for s in part.render_line(y))
    feed.stop()
    assert "TP1" in shown
    assert [name for name, key in KEYS.items() if key in shown] == []


def test_no_key_is_in_the_exporters_page(node: tuple[int, Path]) -> None:
    from ranktop.cli.look import look
    from ranktop.cli.node_options import NodeOptions, make_feed, make_reconciler
    from ranktop.exporter.families import points
    from ranktop.exporter.page import render

    options = NodeOptions(pids=(node[0],), scrape_seconds=1.0)
    feed = make_feed(options)
    feed.start()
    page = render(points(look(feed, make_reconciler(options), 0.0, 5.0))).decode()
    feed.stop()
    assert "ranktop_" in page
    assert [name for name, key in KEYS.items() if key in page] == []


def test_a_wrong_key_is_not_repeated(tmp_path: Path) -> None:
    for url in (f"http://me:{KEYS['own']}@127.0.0.1:1", f"http://127.0.0.1:1/?api_key={KEYS['own']}"):
        said = _run(tmp_path, "check", "--url", url, "--window", "0", codes=(2, 3))
        assert KEYS["own"].encode() not in said


def test_a_prometheus_server_gets_the_token_and_no_screen_does(tmp_path: Path) -> None:
    """Of a server that answers nonsense, and of one that is gone; an address with a key in it is refused."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    address = f"127.0.0.1:{http.server_port}"
    for url in (f"http://me:{KEYS['info_url']}@{address}", f"http://{address}", "http://127.0.0.1:1"):
        for command in (
            ["fleet", "--prometheus", url, "--once"],
            ["why", "--prometheus", url],
            ["record", "--from-prometheus", url, "--instance", "a:1", "-o", str(tmp_path / "a.rtop")],
        ):
            done = subprocess.run(
                [str(RANKTOP), *command],
                capture_output=True,
                timeout=60,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"RANKTOP_PROMETHEUS_TOKEN": KEYS["own"], "HOME": str(tmp_path)},
                check=False,
            )
            assert done.stdout + done.stderr != b""
            assert b"PLANTED" not in done.stdout + done.stderr, command
    http.shutdown()
    http.server_close()


def test_a_defect_of_a_collector_quotes_no_key(caplog: pytest.LogCaptureFixture) -> None:
    """Neither its row nor the log, though the exception quotes what was read."""
    from collectors.poller import Poller

    class Defective:
        name, part, server, period_seconds = "odd", "gpus", None, 0.05

        def read(self, processes: object, now: float) -> object:
            raise ValueError(f"invalid: --api-key {KEYS['launch']} https://me:{KEYS['info_url']}@x/")

    poller = Poller([[Defective()]], lambda _: [])  # type: ignore[list-item]
    poller.start()
    deadline = time.monotonic() + 10
    while not (found := [one for one in poller.sample().sources if (one.name, one.state) == ("odd", "error")]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    poller.stop()
    assert "ValueError: invalid" in found[0].detail
    assert "ValueError: invalid" in caplog.text
    assert "PLANTED" not in found[0].detail + caplog.text
