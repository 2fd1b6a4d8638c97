"""One cause, one row: the same finding on several ranks becomes one finding that names them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ranktop.finding import SEVERITIES, Finding


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
    """`TP0-7` for consecutive plain TP ranks, else the tags with commas, shortened past three."""
    numbers = [int(rank[2:]) for rank in ranks if rank.startswith("TP") and rank[2:].isdigit()]
    consecutive = numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else False
    if len(numbers) == len(ranks) > 2 and consecutive:
        return f"TP{numbers[0]}-{numbers[-1]}"
    if len(ranks) > 3:
        return f"{', '.join(ranks[:3])} +{len(ranks) - 3}"
    return ", ".join(ranks)
