"""What stands before a message: the framing of a container's log, the time, the rank's tag."""

from __future__ import annotations

import pytest

from collectors.serverlog_prefix import rfc3339, split_prefix, unframed


@pytest.mark.parametrize(
    ("line", "tag", "message"),
    [
        ("[2026-11-29 09:00:00] hello", None, "hello"),
        ("[2026-11-29 09:00:00 TP3] hello", "TP3", "hello"),
        ("[2026-11-29 09:00:00.123 DP1 TP5 EP5] hello", "DP1 TP5 EP5", "hello"),
        ("[2026-11-29 09:00:00 DP0 PP0 ATTN_CP3 MOE_DP1 TP7 EP1] x", "DP0 PP0 ATTN_CP3 MOE_DP1 TP7 EP1", "x"),
        ("[2025-12-02 07:04:51 DisaggregationMode.IGPUDECODE TP1] hello", "TP1", "hello"),
        ("[TP2] hello", "TP2", "hello"),
        ("[03:21:43] hello", None, "hello"),
        ("\x1b[32m[2026-11-29 09:00:00 TP3]\x1b[0m hello", "TP3", "hello"),
        ("[]hello", None, "[]hello"),
        ("[CI GPU Idle] hello", None, "hello"),
        ("[2026-99-29 09:00:00 TP3] hello", "TP3", "hello"),
    ],
)
def test_prefixes(line: str, tag: str | None, message: str) -> None:
    prefix = split_prefix(line)
    assert (prefix.tag, prefix.message) == (tag, message)


@pytest.mark.parametrize(
    ("line", "text", "at", "is_partial"),
    [
        ("2026-11-29T09:00:00.123456789Z stdout F hi", "hi", rfc3339("2026-11-29T09:00:00.123456Z"), False),
        ("2026-11-29T11:00:00.5+02:00 stderr P hi", "hi", rfc3339("2026-11-29T09:00:00.5Z"), True),
        (
            '{"log":"hi\\n","stream":"stdout","time":"2026-11-29T09:00:00Z"}',
            "hi",
            rfc3339("2026-11-29T09:00:00Z"),
            False,
        ),
        (
            '{"log":"hi","stream":"stdout","time":"2026-11-29T09:00:00Z"}',
            "hi",
            rfc3339("2026-11-29T09:00:00Z"),
            True,
        ),
        ('{"log":', '{"log":', None, False),
        (
            "worker-1  | 2026-08-31T18:05:32.831330Z  INFO a.b: hi",
            "INFO a.b: hi",
            rfc3339("2026-08-31T18:05:32.83133Z"),
            False,
        ),
        ("[2026-11-29 09:00:00 TP3] hi", "[2026-11-29 09:00:00 TP3] hi", None, False),
    ],
)
def test_framings(line: str, text: str, at: float | None, is_partial: bool) -> None:
    framed = unframed(line)
    assert (framed.text, framed.at_unix_seconds, framed.is_partial) == (text, at, is_partial)
