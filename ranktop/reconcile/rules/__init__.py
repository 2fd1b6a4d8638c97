"""All rules, in the order in which their findings are listed when severities are equal."""

from ranktop.reconcile.rules.headroom import host_headroom
from ranktop.reconcile.rules.metrics import metrics_missing, rank0_only
from ranktop.reconcile.rules.pools import pool_differs, pool_missing
from ranktop.reconcile.rules.ranks import rank_dead
from ranktop.reconcile.rules.rule import HISTORY_LINES, Context, Rule

RULES: tuple[Rule, ...] = (rank_dead, host_headroom, pool_differs, pool_missing, metrics_missing, rank0_only)

__all__ = ["HISTORY_LINES", "RULES", "Context", "Rule"]
