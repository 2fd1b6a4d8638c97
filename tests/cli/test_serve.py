"""The screen in a browser: the page is served here only, and frames of the app arrive over its socket."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from support.command import RANKTOP, ranktop


@pytest.fixture
def port() -> Iterator[int]:
    """A server on a free port, told to look at a /proc without processes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        free = listener.getsockname()[1]
    arguments = [str(RANKTOP), "serve", "--port", str(free), "--", "--pid", "1"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", free)) == 0:
                break
        time.sleep(0.1)
    yield free
    process.terminate()
    process.wait(10)


async def test_frames_arrive(port: int) -> None:
    aiohttp = pytest.importorskip("aiohttp")
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/") as page:
            assert page.status == 200
            assert "ranktop" in await page.text()
        async with session.ws_connect(f"ws://127.0.0.1:{port}/ws?width=100&height=30") as frames:
            seen = ""
            async with asyncio.timeout(30):
                while "no SGLang server" not in seen:
                    frame = await frames.receive()
                    seen += frame.data.decode("utf-8", "replace") if isinstance(frame.data, bytes) else str(frame.data)


def test_an_open_address_is_warned_about() -> None:
    """Port 1 cannot be bound by most, and an address of nobody by none: the warning comes before."""
    process = subprocess.Popen(
        [str(RANKTOP), "serve", "--host", "192.0.2.1", "--port", "9473"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    process.kill()
    process.communicate()
    assert "has no login" in line


@pytest.mark.parametrize(
    ("host", "why"), [("127.0.0.1", "Address already in use"), ("192.0.2.1", "Cannot assign"), ("no.such.host", "")]
)
def test_an_address_that_cannot_be_listened_on_is_one_line(host: str, why: str) -> None:
    pytest.importorskip("textual_serve")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ranktop("serve", "--host", host, "--port", str(port))
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ranktop: serve: cannot listen on {host}:{port}: {why}")
    assert last.endswith("(another --host or --port)")
    assert "Traceback" not in done.stderr


def test_help_says_that_there_is_no_login() -> None:
    assert "no login" in ranktop("serve", "--help").stdout
