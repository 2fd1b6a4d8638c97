"""The ranks that a metrics page alone shows, by SGLang's tags: what is known of a server that tells no launch."""

from __future__ import annotations

from ranktop.reconcile.ranklabels import RankLabels, rank_of
from ranktop.reconcile.series import Series
from ranktop.sample import RankTag

_GAUGES = (
    "sglang:max_total_num_tokens",
    "sglang:num_running_reqs",
    "sglang:token_usage",
    "sglang:kv_used_tokens",
    "sglang:hicache_host_total_tokens",
)


def page_tags(series: Series) -> tuple[str, ...]:
    """Tags in rank order; the parts in which no two ranks of the page differ are left out, as SGLang prints none."""
    ranks = {
        rank
        for name in _GAUGES
        for labels, _ in series.rows(name)
        if "tp_rank" in labels and (rank := rank_of(labels)) is not None
    }
    has_dp, has_pp = (len({part(rank) for rank in ranks}) > 1 for part in (_dp, _pp))
    return tuple(
        str(RankTag(dp=rank.dp if has_dp else None, pp=rank.pp if has_pp else None, tp=rank.tp))
        for rank in sorted(ranks)
    )


def _dp(rank: RankLabels) -> int:
    return rank.dp


def _pp(rank: RankLabels) -> int:
    return rank.pp
