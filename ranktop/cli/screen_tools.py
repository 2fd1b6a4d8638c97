"""What the live screen can do besides drawing: record, export, let go of the GPUs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ranktop.cli.errors import UsageProblem
from ranktop.cli.memory import give_back
from ranktop.cli.node_options import NodeOptions

if TYPE_CHECKING:
    from ranktop.reconcile import Verdict
    from ranktop.sample import GpuHold
    from tui.tools import Recorder, Tools


def screen_tools(node: NodeOptions, gpus: GpuHold) -> Tools:
    """Recordings and exports go into the working directory, under a name of host and time."""
    from collectors.own import own_use
    from tui.tools import Failed, Tools

    def new_recorder() -> tuple[str, Recorder]:
        path = file_name("rtop")
        try:
            return path, start_recorder(node, path)
        except UsageProblem as problem:
            raise Failed(str(problem)) from problem

    def export(verdict: Verdict) -> str:
        path = file_name("json")
        try:
            write_export(verdict, path)
        except UsageProblem as problem:
            raise Failed(str(problem)) from problem
        return path

    return Tools(gpus, new_recorder, export, own_use, give_back)


def start_recorder(node: NodeOptions, path: str) -> Recorder:
    """A recorder that runs. UsageProblem when the file cannot be made."""
    from ranktop.cli.record import make_recorder

    recorder = make_recorder(node, path)
    recorder.start()
    return recorder


def write_export(verdict: Verdict, path: str) -> None:
    """The document of `check --json`; never over a file that is there. UsageProblem when it cannot be written."""
    from ranktop.cli.documents import check_document, encode
    from ranktop.cli.output import new_text

    with new_text("export", path) as file:
        file.write(encode(check_document(verdict, verdict.tiers.window_seconds)) + "\n")


def file_name(suffix: str) -> str:
    """`ranktop-node-a-20261129-140327.rtop`."""
    host = "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in os.uname().nodename)
    return f"ranktop-{host}-{time.strftime('%Y%m%d-%H%M%S')}.{suffix}"
