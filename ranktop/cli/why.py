"""`ranktop why`: what died here and of what, with no server and no recording needed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from ranktop.cli.documents import encode
from ranktop.cli.errors import NothingToLookAt, UsageProblem
from ranktop.cli.launch_history import remembered
from ranktop.cli.record_options import DURATION
from ranktop.cli.why_text import why_text
from ranktop.clock import duration, iso_utc
from ranktop.plan import LaunchRequest, parse_launch
from ranktop.why.evidence import Evidence
from ranktop.why.gather import Where, gather
from ranktop.why.judge import Judgement, judge

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False)
_MAX_LAUNCH_BYTES = 1 << 20


@click.command()
@click.option("--since", type=DURATION, default="2h", show_default=True, metavar="TIME", help="How far back to look.")
@click.option("--kernel-log", type=_FILE, metavar="FILE", help="Saved dmesg or journal instead of this node's.")
@click.option("--log", "logs", multiple=True, type=_FILE, metavar="FILE", help="A server's log; may be given again.")
@click.option("--recording", "recordings", multiple=True, metavar="FILE.rtop", help="What ranktop recorded before.")
@click.option("--launch", type=_FILE, metavar="FILE", help="The launch line, where no log tells it.")
@click.option("--prometheus", metavar="URL", help="Ask this Prometheus server for kills, once, for 2 s.")
@click.option("--proc-root", default="/proc", type=_FOLDER, show_default=True, help="Where /proc is mounted.")
@click.option("--sys-root", default="/sys", type=_FOLDER, show_default=True, help="Where /sys is mounted.")
@click.option("--pods-root", default="/var/log/pods", type=_FOLDER, show_default=True, help="Where pods' logs are.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def why(
    since: float,
    kernel_log: Path | None,
    logs: tuple[Path, ...],
    recordings: tuple[str, ...],
    launch: Path | None,
    prometheus: str | None,
    proc_root: str,
    sys_root: str,
    pods_root: str,
    as_json: bool,
) -> int:
    """Say what died on this node and of what: kernel log of this boot and the last, cgroups, logs of containers that
    are gone, recordings, held against the plan.

    Exit 1 when a death is found, 0 when none is, 3 when nothing could be read.
    """
    now = time.time()
    where = Where(
        kernel_log=kernel_log,
        logs=logs,
        recordings=recordings,
        prometheus=_checked(prometheus) if prometheus is not None else None,
        launch=_launch(launch) if launch is not None else None,
        launches=remembered(),
        proc_root=proc_root,
        sys_root=sys_root,
        pods_folder=pods_root,
    )
    evidence = gather(where, now - since, now)
    if not any(reading.state == "read" for reading in evidence.readings):
        failed = next((one for one in evidence.readings if one.state == "failed"), evidence.readings[0])
        raise NothingToLookAt(
            f"why: nothing could be read: {failed.source}: {failed.detail} (run as root, or give --kernel-log FILE)"
        )
    judgement = judge(evidence)
    if as_json:
        document = why_document(judgement, evidence, now - since, now)
        click.echo(encode(document))
    else:
        click.echo(why_text(judgement, evidence, duration(since)))
    return 1 if judgement.deaths else 0


def why_document(judgement: Judgement, evidence: Evidence, since: float, now: float) -> dict[str, Any]:
    """`why --json`."""

    def deaths(found: tuple[Any, ...]) -> list[dict[str, Any]]:
        documents = []
        for death in found:
            at = death.at_unix_seconds
            document = msgspec.to_builtins(death)
            del document["at_unix_seconds"], document["is_sglang"]
            documents.append({"at": iso_utc(at) if at is not None else None} | document)
        return documents

    return {
        "schema": 1,
        "at": iso_utc(now),
        "since": iso_utc(since),
        "deaths": deaths(judgement.deaths),
        "others": deaths(judgement.others),
        "prometheus": msgspec.to_builtins(evidence.series),
        "sources": msgspec.to_builtins(evidence.readings),
    }


def _checked(url: str) -> str:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageProblem(f"--prometheus {url}: not an address (like http://127.0.0.1:9090)")
    if parts.username or parts.password:
        raise UsageProblem("--prometheus: holds a user or a password, which would show in ps (give one without)")
    return parts.geturl().rstrip("/")


def _launch(path: Path) -> LaunchRequest:
    try:
        with path.open("rb") as file:
            return parse_launch(file.read(_MAX_LAUNCH_BYTES).decode("utf-8", "replace"))
    except OSError as problem:
        raise UsageProblem(f"--launch {path}: {problem.strerror} (give a file with the launch line)") from problem
