"""The stand-in's `sglang::detokenizer`, and the last one out: when node and launcher are both gone it removes
the temporary directory that neither can remove any more.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import sys

_GRACE_SECONDS = 0.5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--title", required=True)
    parser.add_argument("--launcher-fd", type=int, required=True)
    parser.add_argument("--directory", required=True)
    options = parser.parse_args()
    import setproctitle

    setproctitle.setproctitle(options.title)
    while os.read(sys.stdin.fileno(), 1):
        pass
    gone, _, _ = select.select([options.launcher_fd], [], [], _GRACE_SECONDS)
    if gone:
        shutil.rmtree(options.directory, ignore_errors=True)


if __name__ == "__main__":
    main()
