"""Run as a program: a process with a title and children, as SGLang's processes look from outside.

One argument, a JSON object: `title` (None keeps the command line), `children` (such objects), `linger` (outlive the
parent). Every process prints `pid title` once it has its title, and waits to be killed.
"""

import json
import os
import signal
import subprocess
import sys

import setproctitle


def main() -> None:
    node = json.loads(sys.argv[-1])
    for child in node.get("children", ()):
        subprocess.Popen([sys.executable, os.path.abspath(__file__), json.dumps(child)], start_new_session=False)
    if not node.get("linger"):
        _die_with_parent()
    if node.get("title"):
        setproctitle.setproctitle(node["title"])
    sys.stdout.write(f"{os.getpid()} {node.get('title')}\n")
    sys.stdout.flush()
    while True:
        signal.pause()


def _die_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    main()
