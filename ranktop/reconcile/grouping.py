"""One cause, one row: the same finding on several ranks becomes one finding that names them all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ranktop.finding import SEVERITIES, Finding

_PARTS = re.compile(r"(\S+?)(\d+)(?= |$)")
"""Names and numbers of a tag: `DP0 ATTN_CP3 TP7`."""


def group(findings: Iterable[Finding], rank_order: Mapping[tuple[str | None, str | None], int]) -> tuple[Finding, ...]:
    """Merge by code, server and severity; worst first, then in the order given.

    `rank_order` maps (server, rank) to the rank's place, so that lists of ranks come out in SGLang's order.
    """
    groups: dict[tuple[str, str | None, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.server, finding.severity), []).append(finding)
    merged = [_merge(members, rank_order) for members in groups.values()]
    return tuple(sorted(merged, key=lambda finding: -SEVERITIES.index(finding.severity)))


def _merge(members: Sequence[Finding], rank_order: Mapping[tuple[str | None, str | None], int]) -> Finding:
    first = members[0]
    ranks = sorted(
        dict.fromkeys(finding.rank for finding in members if finding.rank is not None),
        key=lambda rank: rank_order.get((first.server, rank), len(rank_order)),
    )
    # The ranks are named beside the message: that it holds for all of them needs no words.
    same = len(members) == 1 or (len(ranks) == len(members) and len({each.message for each in members}) == 1)
    more = "" if same else f" (and {len(members) - 1} more like it)"
    return replace(
        first,
        rank=ranks[0] if len(ranks) == 1 else None,
        ranks=tuple(ranks),
        message=first.message + more,
        since=min((finding.since for finding in members if finding.since), default=None),
    )


def rank_span(ranks: Sequence[str]) -> str:
    """`TP0-7`, or `DP0-3 TP0-7`, where one part of the tags goes up by one, else the tags with commas, shortened past
    three."""
    if len(ranks) > 2 and (span := _range(ranks)):
        return span
    if len(ranks) > 3:
        return f"{', '.join(ranks[:3])} +{len(ranks) - 3}"
    return ", ".join(ranks)


def _range(ranks: Sequence[str]) -> str:
    """Empty where the tags have other parts, or none goes up by one while the others do not go down."""
    tags = [_PARTS.findall(rank) for rank in ranks]
    names = [name for name, _ in tags[0]]
    are_whole = all(len(rank.split(" ")) == len(tag) for rank, tag in zip(ranks, tags, strict=True))
    if not are_whole or any([name for name, _ in tag] != names for tag in tags):
        return ""
    columns = [[int(number) for _, number in column] for column in zip(*tags, strict=True)]
    count_up = any(column == list(range(column[0], column[0] + len(ranks))) for column in columns)
    if not count_up or any(column != sorted(column) for column in columns):
        return ""
    spans = [f"{each[0]}" if each[0] == each[-1] else f"{each[0]}-{each[-1]}" for each in columns]
    return " ".join(name + span for name, span in zip(names, spans, strict=True))
