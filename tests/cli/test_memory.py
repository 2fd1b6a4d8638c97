"""What keeps the screen's memory small, each tried in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.command import RANKTOP
from support.terminal import Terminal

HEAPS = """
import ctypes, threading
from ranktop.cli.memory import share_one_arena
if {shared}:
    share_one_arena()
kept, gate = [], threading.Barrier(9)
def take():
    kept.append([bytes(3000) for _ in range(50)])
    gate.wait()
for _ in range(8):
    threading.Thread(target=take).start()
gate.wait()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
out = libc.fdopen(1, b"w")
libc.malloc_info(0, ctypes.c_void_p(out))
libc.fflush(ctypes.c_void_p(out))
"""

HOLES = """
import os
from ranktop.cli.memory import give_back
def rss_bytes():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
kept = [bytes(2000) for _ in range(20000)]
last = bytes(2000)
del kept
full = rss_bytes()
give_back()
print(full - rss_bytes())
"""

FROZEN = """
import gc
from ranktop.cli.memory import collect_seldom
if {seldom}:
    collect_seldom()
before = gc.get_stats()[0]["collections"]
verdicts = [None]
for _ in range(10):
    verdicts[0] = [[place] for place in range(5000)]
print(gc.get_stats()[0]["collections"] - before)
"""

LATER = """
import sys, threading
from ranktop.cli.importing import tls_later
found = []
def elsewhere():
    import ssl
    found.append(ssl)
with tls_later():
    import asyncio, http.client
    assert "ssl" not in sys.modules
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
assert found, "another thread speaks TLS meanwhile"
import ssl
assert sys.meta_path[0].__class__.__name__ != "_NoTls"
asyncio.run(asyncio.sleep(0))
print(ssl.create_default_context().verify_mode.name)
"""


def said(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_threads_share_one_heap() -> None:
    assert said(HEAPS.format(shared=False)).count("<heap nr=") > 1
    assert said(HEAPS.format(shared=True)).count("<heap nr=") == 1


def test_what_is_free_goes_back() -> None:
    assert int(said(HOLES)) > 10_000_000


def test_what_frees_itself_is_not_looked_through() -> None:
    assert int(said(FROZEN.format(seldom=False))) > 10
    assert int(said(FROZEN.format(seldom=True))) == 0


def test_tls_is_imported_by_who_speaks_it() -> None:
    assert said(LATER) == "CERT_REQUIRED\n"


@pytest.mark.e2e
def test_the_screen_runs_without_openssl() -> None:
    screen = Terminal([str(RANKTOP), "--no-mouse"], 120, 40)
    assert screen.read_until("9 sources", 40) is not None
    screen.press(b"9")
    assert screen.read_until("ranktop itself", 40) is not None, "the app is there, not only its first picture"
    maps = Path(f"/proc/{screen.pid}/maps").read_text()
    assert "libpython" in maps or "python" in maps
    assert "libssl" not in maps
    screen.press(b"q")
    assert screen.wait(10) == 0
