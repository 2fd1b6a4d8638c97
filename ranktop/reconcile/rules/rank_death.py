"""Why a rank ended: what the log, the kernel and NVML said shortly before."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.reconcile.lives import GoneRank
from ranktop.reconcile.rules.rule import Context
from ranktop.sample import Event

_AFTER_SECONDS = 30.0
"""A log is read, and the kernel speaks, a little after the process is gone."""

_MOST_LETTERS = 300


class Death(NamedTuple):
    """`orderly` None: nothing says. `reason` is a clause for the message, empty when nothing says."""

    orderly: bool | None
    reason: str


def death_of(context: Context, gone: GoneRank) -> Death:
    """The newest thing said before the end that explains it; a fault outranks a signal."""
    return why_ended(context, gone.process.server, str(gone.process.tag), gone.process.pid, gone.gone_unix_seconds)


def why_ended(context: Context, server: str, rank: str, pid: int, at_unix_seconds: float) -> Death:
    """The same for a process that is known by its parts."""
    since = at_unix_seconds - context.thresholds.exit_seconds
    until = at_unix_seconds + _AFTER_SECONDS
    said = [
        event
        for event in context.incidents.of("oom_kill", "traceback", "aborted_oom", "signal", since_unix_seconds=since)
        if event.at_unix_seconds <= until and (event.server == server or event.fields.get("pid") == pid)
    ]
    kills = [event for event in said if event.kind == "oom_kill"]
    own = next((event for event in kills if event.fields.get("pid") == pid or event.rank == rank), None)
    if own is not None:
        return Death(False, "killed by the kernel for memory")
    if kills:
        return Death(False, f"after the kernel killed pid {kills[-1].fields.get('pid')} of its server for memory")
    faults = [event for event in said if event.kind in ("traceback", "aborted_oom") and not _is_interrupt(event)]
    terms = [event for event in said if event.kind == "signal" and event.fields.get("signal") == "SIGTERM"]
    if faults and not any(term.at_unix_seconds <= faults[-1].at_unix_seconds for term in terms):
        first = next((event for event in faults if event.rank == rank), faults[0])
        where = "" if first.rank in (None, rank) else f" on {first.rank}"
        return Death(False, f"after {_short(first.text)}{where}")
    if terms or any(_is_interrupt(event) for event in said):
        return Death(True, "after SIGTERM" if terms else "after an interrupt")
    if any(event.kind == "signal" for event in said):
        return Death(False, "after SIGQUIT, which a failing child sends")
    return Death(None, "")


def _is_interrupt(event: Event) -> bool:
    return event.kind == "traceback" and event.fields.get("error_type") == "KeyboardInterrupt"


def _short(text: str) -> str:
    """SGLang's longest refusals are some 200 letters, and the numbers stand at their end."""
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
