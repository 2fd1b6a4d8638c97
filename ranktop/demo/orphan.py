"""Leaves a rank behind whose parent is gone: starts it with its own pipes, in a session of its own, and ends."""

from __future__ import annotations

import subprocess
import sys


def main() -> None:
    arguments = [sys.executable, "-P", "-m", "ranktop.demo.rank", "--parentless", *sys.argv[1:]]
    subprocess.Popen(arguments, start_new_session=True)


if __name__ == "__main__":
    main()
