"""Ranks as the labels of scheduler series name them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from ranktop.sample import RankTag


class RankLabels(NamedTuple):
    """A rank as scheduler series label it; an absent label counts as 0. `tp` is global within the engine."""

    dp: int
    pp: int
    tp: int

    def __str__(self) -> str:
        return f"{self.dp}/{self.pp}/{self.tp}"


def rank_of(labels: Mapping[str, str]) -> RankLabels | None:
    """The rank that a scheduler series belongs to, None for a series without rank labels."""
    tp = labels.get("tp_rank")
    return None if tp is None else _rank_labels(labels.get("dp_rank", "0"), labels.get("pp_rank", "0"), tp)


@functools.lru_cache(maxsize=4096)
def _rank_labels(dp: str, pp: str, tp: str) -> RankLabels | None:
    try:
        return RankLabels(int(dp), int(pp), int(tp))
    except ValueError:
        return None


@functools.lru_cache(maxsize=4096)
def labels_of(tag: RankTag) -> RankLabels:
    """A process's tag as scheduler series label it."""
    return RankLabels(tag.dp or 0, tag.pp or 0, tag.tp or 0)
