"""Lines of one server's log into events: partial lines joined, tracebacks whole with their rank, batches thinned."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple

from msgspec.structs import replace

from collectors.secrets import prose_without_secrets
from collectors.serverlog_args import parse_server_args
from collectors.serverlog_batches import match_batch
from collectors.serverlog_lines import match_message
from collectors.serverlog_prefix import MAX_ARGS_CHARACTERS, MAX_LINE_CHARACTERS, Prefix, split_prefix, unframed
from ranktop.sample import Event

MAX_EVENTS = 2000
"""Most events between two reads. What comes on top is counted in one `log_gap` event."""

_MAX_TEXT = 500
_MAX_TRACEBACK_LINES = 200
_MAX_STREAMS = 8
_ZONE_STEP_SECONDS = 900
_MAX_ZONE_SECONDS = 14 * 3600
_WRITTEN_WITHIN_SECONDS = 5
_ARGS_MARK = "server_args="
_TRACEBACK_MARK = "Traceback (most recent call last)"
_CONTINUATIONS = (_TRACEBACK_MARK, "Try to allocate ")
_CHAINED = (" ", _TRACEBACK_MARK, "During handling of", "The above exception")
_CAUGHT = re.compile(r"(?P<who>Scheduler|DataParallelController|DetokenizerManager|TokenizerManager) hit an exception")
_ERROR_LINE = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure))(?:: (.*))?$")
_BATCHES = ("Prefill batch", "Decode batch")


class LogAssembler:
    """Feed lines in order, take events. Holds one open traceback and at most MAX_EVENTS events."""

    def __init__(self, server: str | None, zone: tzinfo | None = None) -> None:
        self._server = server
        self.zone = zone
        self._events: list[Event] = []
        self._batches: dict[tuple[str, str | None], _BatchLine] = {}
        self._dropped = 0
        self._partials: dict[str, str] = {}
        self._traceback: _Traceback | None = None
        self._last_tag: str | None = None
        self._at_unix_seconds = 0.0
        self._last_local: datetime | None = None
        self._last_at = 0.0

    def set_zone(self, last_line: str, written_unix_seconds: float) -> None:
        """Learn the zone of SGLang's stamps from a line and when it was written (its file's mtime, or now)."""
        local = split_prefix(unframed(last_line).text).local
        if local is None or self.zone is not None:
            return
        offset = local.replace(tzinfo=UTC).timestamp() - written_unix_seconds
        seconds = round(offset / _ZONE_STEP_SECONDS) * _ZONE_STEP_SECONDS
        # A file that was copied, or written to by somebody else, says nothing of the zone.
        if abs(offset - seconds) <= _WRITTEN_WITHIN_SECONDS and abs(seconds) <= _MAX_ZONE_SECONDS:
            self.zone = timezone(timedelta(seconds=seconds))

    def feed(self, lines: Iterable[str], now: float) -> None:
        """Read lines without their line ends. `now` is the Unix time of a line that says none."""
        for line in lines:
            framed = unframed(line)
            text = self._partials.pop(framed.stream[:8], "") + framed.text
            if framed.is_partial and len(text) < MAX_ARGS_CHARACTERS and len(self._partials) < _MAX_STREAMS:
                self._partials[framed.stream[:8]] = text
                continue
            self._line(text, framed.at_unix_seconds, now)

    def take(self) -> tuple[Event, ...]:
        """The events since the last call, oldest first; of a rank's batch lines the newest, and how many there were."""
        if self._traceback is not None and self._traceback.error is not None:
            self._close_traceback()
        batches = (self._batch_event(rank, batch) for (_, rank), batch in self._batches.items())
        kept = [*self._events, *(event for event in batches if event is not None)]
        events = sorted(kept, key=lambda event: event.at_unix_seconds)
        if self._dropped:
            text = f"{self._dropped} more log events than are kept"
            events.append(Event(self._at_unix_seconds, "log_gap", text, self._server, fields={"events": self._dropped}))
        self._events, self._batches, self._dropped = [], {}, 0
        return tuple(events)

    def gap(self, skipped_bytes: int, now: float) -> None:
        """Note that part of the log was not read."""
        text = f"{skipped_bytes} bytes of the log were skipped to keep up"
        self._keep(Event(now, "log_gap", text, self._server, fields={"skipped_bytes": skipped_bytes}))

    def _line(self, text: str, framed_at: float | None, now: float) -> None:
        if len(text) > MAX_LINE_CHARACTERS:
            text = text[: MAX_ARGS_CHARACTERS if _ARGS_MARK in text[:200] else MAX_LINE_CHARACTERS]
        prefix = split_prefix(text)
        self._at_unix_seconds = at = self._time(prefix, framed_at, now)
        if self._traceback is not None:
            if self._traceback.goes_on(prefix):
                if prefix.message.strip():
                    self._continue_traceback(prefix.message)
                return
            if self._traceback.is_over():
                self._close_traceback()
        message = prefix.message
        if prefix.is_bracketed:
            self._last_tag = prefix.tag
        # The second line of a record has no prefix of its own.
        rank = self._last_tag if message.startswith(_CONTINUATIONS) else prefix.tag
        if message.startswith(_ARGS_MARK):
            args = parse_server_args(message[len(_ARGS_MARK) :])
            self._keep(Event(at, "server_args", "server started", self._server, fields={"args": args}))
        elif _TRACEBACK_MARK in message:
            self._open_traceback(at, rank, message)
        else:
            self._message(at, rank, message)

    def _message(self, at: float, rank: str | None, message: str) -> None:
        if message.startswith(_BATCHES):
            # At most the newest is told of, so only that one is read.
            key = (message[:7], rank)
            known = self._batches.get(key)
            self._batches[key] = _BatchLine(at, message, known.lines + 1 if known is not None else 1)
            return
        found = match_message(message)
        if found is not None:
            kind, fields = found
            self._keep(Event(at, kind, message[:_MAX_TEXT].rstrip(), self._server, rank, fields))

    def _batch_event(self, rank: str | None, batch: _BatchLine) -> Event | None:
        found = match_batch(batch.message)
        if found is None:
            return None
        kind, fields = found
        fields["lines"] = batch.lines
        return Event(batch.at, kind, batch.message[:_MAX_TEXT].rstrip(), self._server, rank, fields)

    def _keep(self, event: Event) -> None:
        if len(self._events) < MAX_EVENTS:
            self._events.append(_without_secrets(event))
        else:
            self._dropped += 1

    def _open_traceback(self, at: float, rank: str | None, message: str) -> None:
        if self._traceback is not None:
            self._close_traceback()
        caught = _CAUGHT.match(message)
        self._traceback = _Traceback(at, rank, caught["who"] if caught is not None else None)

    def _continue_traceback(self, line: str) -> None:
        traceback = self._traceback
        assert traceback is not None
        is_error = traceback.add(line)
        if not line.startswith(" "):
            self._message(traceback.at, traceback.rank if is_error else None, line)

    def _close_traceback(self) -> None:
        traceback, self._traceback = self._traceback, None
        assert traceback is not None
        text = traceback.error or "traceback without its last line"
        self._keep(Event(traceback.at, "traceback", text[:_MAX_TEXT], self._server, traceback.rank, traceback.fields()))

    def _time(self, prefix: Prefix, framed_at: float | None, now: float) -> float:
        """Unix time of a line: its frame's, its own stamp in the learnt zone (else this host's), or the line before."""
        if framed_at is not None:
            return framed_at
        if prefix.local is None:
            return self._at_unix_seconds or now
        if prefix.local is not self._last_local:
            try:
                self._last_at = prefix.local.replace(tzinfo=self.zone).timestamp()
            except (OverflowError, ValueError, OSError):
                self._last_at = now
            self._last_local = prefix.local
        return self._last_at


class _BatchLine(NamedTuple):
    at: float
    message: str
    lines: int


class _Traceback:
    """An exception's lines. They carry no prefix, so other ranks' lines can stand between them."""

    def __init__(self, at: float, rank: str | None, who: str | None) -> None:
        self.at = at
        self.rank = rank
        self.error: str | None = None
        self._who = who
        self._type: str | None = None
        self._lines: list[str] = []
        self._strangers = 0

    def goes_on(self, prefix: Prefix) -> bool:
        """Whether a line belongs to it. After its error only a chained exception does: other programs log here too."""
        if prefix.is_bracketed:
            return False
        return self.error is None or not prefix.message.strip() or prefix.message.startswith(_CHAINED)

    def add(self, line: str) -> bool:
        """Take a line; whether it is the one that names the error."""
        if len(self._lines) < _MAX_TRACEBACK_LINES:
            self._lines.append(line[:_MAX_TEXT])
        match = _ERROR_LINE.match(line)
        if match is not None:
            self._type, self.error = match[1], line
        elif line.startswith(_TRACEBACK_MARK):
            self._type = self.error = None
        return match is not None

    def is_over(self) -> bool:
        """Whether a line of the logger ends it: once its error is known, or after too many strangers."""
        self._strangers += 1
        return self.error is not None or self._strangers > _MAX_TRACEBACK_LINES

    def fields(self) -> dict[str, Any]:
        return {"error_type": self._type, "process": self._who, "lines": list(self._lines)}


def _without_secrets(event: Event) -> Event:
    """Arguments lost theirs when they were read; a message can quote a command line or a header."""
    fields = {name: _clean(value) for name, value in event.fields.items()}
    return replace(event, text=prose_without_secrets(event.text), fields=fields)


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return prose_without_secrets(value) if isinstance(value, str) else value
