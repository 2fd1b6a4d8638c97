"""`ranktop exporter` as users run it."""

from __future__ import annotations

import re
import select
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

# The command by its module: what is tested is not whether the table of commands names it.
_RUN = """
import sys
from ranktop.cli import main
main.COMMANDS.setdefault("exporter", "")
sys.exit(main.run(sys.argv[1:]))
"""


@contextmanager
def exporting(*arguments: str) -> Generator[str]:
    """`HOST:PORT` of an exporter on a free port. It ends with the block, and has to end well."""
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, "exporter", "--listen", "127.0.0.1:0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert select.select([process.stdout], [], [], 30)[0], "the exporter said nothing"
        line = process.stdout.readline()
        match = re.fullmatch(r"exporter: https?://(127\.0\.0\.1:\d+)/metrics\n", line)
        assert match, line or process.communicate()[1]
        yield match[1]
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
