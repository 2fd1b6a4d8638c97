"""The health of a source, and the exceptions with which a reader says why it has nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from ranktop.sample.fields import gauge, label

State = Literal["ok", "no_data", "error", "stale"]


class SourceState(Struct, frozen=True, array_like=True):
    """How one collector fared. `no_data`: not here, and that is ordinary. `error`: should be here, and failed."""

    name: Annotated[str, label("source", 12, "name of the collector")]
    state: Annotated[State, label("state", 8, "ok, no_data, error, stale")]
    part: str = ""
    """The field of `Sample` that it fills."""
    server: Annotated[str | None, label("server", 15, "server it reads, None for the host")] = None
    code: Annotated[str, label("code", 14, "what kind of failure, for rules: refused, timeout, http_401, ...")] = ""
    detail: Annotated[str, label("detail", 40, "what was tried, what came back, what to do")] = ""
    at_unix_seconds: Annotated[float | None, gauge("at", "seconds", 12, "when it last succeeded")] = None
    took_seconds: Annotated[float | None, gauge("took", "seconds", 7, "time of the last read")] = None
    period_seconds: Annotated[float, gauge("every", "seconds", 6, "its cadence")] = 1.0


class NoData(Exception):  # noqa: N818 - an answer, not an error
    """This source does not exist here: no driver, no file, switched off. An ordinary state."""

    def __init__(self, detail: str, code: str = "absent") -> None:
        super().__init__(detail)
        self.code = code


class SourceError(Exception):
    """This source should have answered and did not: one line that says what came back and what to do."""

    def __init__(self, detail: str, code: str = "error") -> None:
        super().__init__(detail)
        self.code = code
