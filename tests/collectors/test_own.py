"""ranktop's own cost: every figure against another source for it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from collectors.http import get
from collectors.own import own_use
from ranktop.sample import Asked, SourceError
from support.http_answers import answering, closed_port

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


def cpu_by_the_kernel() -> float:
    fields = Path("/proc/self/stat").read_bytes().rsplit(b")", 1)[1].split()
    return sum(map(int, fields[11:15])) * TICK_SECONDS


def test_cpu_is_the_kernels() -> None:
    def work() -> None:
        ends = time.thread_time() + 0.1
        while time.thread_time() < ends:
            pass

    before = own_use().cpu_seconds
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    lower, own, upper = cpu_by_the_kernel(), own_use().cpu_seconds, cpu_by_the_kernel()
    assert own - before >= 0.1 - 2 * TICK_SECONDS, "a thread's time counts"
    assert lower - 2 * TICK_SECONDS <= own <= upper + 2 * TICK_SECONDS


def test_memory_is_the_kernels() -> None:
    status = Path("/proc/self/status").read_text()
    by_kernel = int(status.partition("VmRSS:")[2].split()[0]) * 1024
    before = own_use().rss_bytes
    assert before == pytest.approx(by_kernel, abs=1 << 20)
    kept = b"x" * (32 << 20)
    after = own_use().rss_bytes
    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(len(kept), abs=1 << 20)


class Slow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.2)
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * 1000)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def test_a_server_is_charged_for_what_it_is_asked() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    started = time.monotonic()
    for _ in range(2):
        get(f"http://127.0.0.1:{server.server_port}/metrics")
    took = time.monotonic() - started
    asked = own_use().asked[f"127.0.0.1:{server.server_port}"]
    assert asked.requests == 2
    assert asked.answer_bytes == 2000
    assert 0.4 <= asked.seconds <= took
    server.shutdown()
    server.server_close()


def test_what_fails_counts_too() -> None:
    url = closed_port()
    with pytest.raises(SourceError):
        get(url)
    assert own_use().asked[url.removeprefix("http://")].requests == 1


def test_each_address_for_itself() -> None:
    with answering(body=b"one") as first, answering(body=b"other") as second:
        for url in (first, second, second):
            get(url)
        asked = own_use().asked
    assert [asked.get(url.removeprefix("http://"), Asked())[:2] for url in (first, second)] == [(1, 3), (2, 10)]


@pytest.mark.parametrize(
    ("opening", "walks"),
    [
        ("open('/proc/self/smaps_rollup').close()", 1),
        ("os.close(os.open(b'/proc/self/smaps', os.O_RDONLY))", 1),
        ("os.close(os.open('pagemap', os.O_RDONLY, dir_fd=os.open('/proc/self', os.O_RDONLY)))", 1),
        ("pathlib.Path('/proc/self/smaps').read_bytes(); pathlib.Path('/proc/self/smaps').read_bytes()", 2),
        ("open('/proc/self/maps').close(); open(os.open('/proc/self/statm', 0)).close()", 0),
    ],
)
def test_a_page_walk_is_seen(opening: str, walks: int) -> None:
    script = (
        "import os, pathlib\n"
        "from collectors.own import count_page_walks, own_use\n"
        f"count_page_walks(); count_page_walks()\n{opening}\nprint(own_use().page_walks)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{walks}\n"
