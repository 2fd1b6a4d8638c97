"""Whatever a command is doing when the signal comes, it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from ranktop.cli.stopping import Stopped

# Waits for moments and is sent signals at any of them, many times in one process: with a lock that the handler needs
# too it stands still within a second or two.
WAITING = """
import os, subprocess, sys, time
from ranktop.cli.stopping import until_a_signal
stopped = until_a_signal()
sender = subprocess.Popen([sys.executable, "-c", '''
import os, random, time
parent = os.getppid()
while os.getppid() == parent:
    os.kill(parent, 15)
    time.sleep(0.0005 + random.random() * 0.001)
'''])
ends, ended = time.monotonic() + 5, 0
while time.monotonic() < ends:
    stopped = until_a_signal()
    while not stopped.wait(0.00001):
        pass
    ended += 1
sender.kill()
print(ended)
"""


def test_a_signal_at_any_moment_is_heard() -> None:
    done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 100


def test_waiting_takes_as_long_as_it_is_told_and_no_longer() -> None:
    stopped = Stopped()
    before = time.monotonic()
    assert not stopped.wait(0.05)
    assert time.monotonic() - before >= 0.05
    stopped.set()
    assert (stopped.is_set(), stopped.wait(3600), stopped.wait(3600)) == (True, True, True)


def test_a_long_wait_ends_with_the_signal() -> None:
    script = "from ranktop.cli.stopping import until_a_signal\ns = until_a_signal()\nprint(flush=True)\ns.wait(3600)"
    waiting = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert waiting.stdout is not None
    waiting.stdout.readline()
    waiting.send_signal(signal.SIGHUP)
    assert waiting.wait(20) == 0
    waiting.stdout.close()


# The interpreter drops what is raised while it takes an object away, also a KeyboardInterrupt.
LOST = """
import os, signal, sys
from types import SimpleNamespace as Some
from ranktop.cli import demo
class Ending:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass
demo.make_feed = lambda _: Some(start=int, stop=int, sample=Ending)
demo.make_reconciler = lambda _: Some(update=lambda _: Some(findings=()))
stopped = demo._end_on_signals()
try:
    demo._judged(None, 600.0, stopped)
except KeyboardInterrupt:
    print("ended")
"""


def test_a_demo_ends_by_a_signal_whose_exception_is_lost() -> None:
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=60, check=False)
    assert "Exception ignored" in done.stderr
    assert done.stdout == "ended\n"
