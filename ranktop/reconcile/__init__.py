"""Planned against seen: samples and a plan become lines, findings and one sentence."""

from ranktop.reconcile.reconciler import Reconciler
from ranktop.reconcile.thresholds import Thresholds
from ranktop.reconcile.verdict import Line, Verdict

__all__ = ["Line", "Reconciler", "Thresholds", "Verdict"]
