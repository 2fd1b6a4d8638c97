"""All rules, in the order in which their findings are listed when severities are equal."""

from ranktop.reconcile.rules.gpu_health import gpu_ecc, gpu_lost, nvml_broken
from ranktop.reconcile.rules.gpu_memory import hbm_orphan, hbm_over, hbm_skew
from ranktop.reconcile.rules.gpu_xid import gpu_xid
from ranktop.reconcile.rules.headroom import host_headroom, node_full
from ranktop.reconcile.rules.host_cgroup import host_cgroup
from ranktop.reconcile.rules.host_gate import host_gate
from ranktop.reconcile.rules.host_leak import anon_leak, unreachable_pool
from ranktop.reconcile.rules.host_loading import pool_loading
from ranktop.reconcile.rules.host_oom import oom_kill
from ranktop.reconcile.rules.host_pins import not_pinned
from ranktop.reconcile.rules.host_pressure import host_pressure, host_swap
from ranktop.reconcile.rules.host_shm import shm_unexplained
from ranktop.reconcile.rules.l2_why import l2_why
from ranktop.reconcile.rules.l3 import l3_deadline, l3_rank_skew, prefetch_empty
from ranktop.reconcile.rules.l3_disk import l3_disk
from ranktop.reconcile.rules.launch import launch_changed, launch_drift
from ranktop.reconcile.rules.layersplit import layer_cp1, layer_disagree, layer_no_comm, layer_range
from ranktop.reconcile.rules.metrics import metrics_dedup, metrics_missing, rank0_only
from ranktop.reconcile.rules.numa import numa_remote, numa_unknown
from ranktop.reconcile.rules.pd import pd_duplicate, pd_failures, pd_transport
from ranktop.reconcile.rules.pd_ranks import pd_rank_missing
from ranktop.reconcile.rules.pools import pool_differs, pool_missing
from ranktop.reconcile.rules.ranks import rank_dead, rank_restarted
from ranktop.reconcile.rules.rule import NODE_HISTORY, RANK_HISTORY, SELDOM_RANK_HISTORY, SERVER_RUNNING, Context, Rule
from ranktop.reconcile.rules.server_hung import metrics_stale, pd_stuck, server_hung
from ranktop.reconcile.rules.spec import spec_collapse
from ranktop.reconcile.rules.teardown import teardown
from ranktop.reconcile.rules.tiers import l2_churn, l2_dropped, l2_never_read, l2_phantom_hit, l2_proven
from ranktop.reconcile.rules.tiers_storage import attach_split, shared_mismatch
from ranktop.reconcile.rules.tiers_truth import gauge_lies, io_fallback, tier_inconsistent, ttft_only

_HOST: tuple[Rule, ...] = (
    oom_kill,
    host_cgroup,
    host_headroom,
    host_gate,
    node_full,
    pool_differs,
    pool_missing,
    not_pinned,
    host_pressure,
    host_swap,
    anon_leak,
    unreachable_pool,
    shm_unexplained,
    teardown,
    pool_loading,
    numa_remote,
    numa_unknown,
)
_GPU: tuple[Rule, ...] = (gpu_lost, gpu_xid, gpu_ecc, hbm_over, hbm_skew, hbm_orphan, nvml_broken)
_PD: tuple[Rule, ...] = (
    pd_stuck,
    pd_rank_missing,
    pd_failures,
    pd_duplicate,
    pd_transport,
    layer_range,
    layer_disagree,
    layer_no_comm,
    layer_cp1,
)
_TIERS: tuple[Rule, ...] = (
    tier_inconsistent,
    gauge_lies,
    l2_never_read,
    l2_phantom_hit,
    l2_dropped,
    l2_churn,
    l2_why,
    attach_split,
    shared_mismatch,
    l3_rank_skew,
    prefetch_empty,
    l3_deadline,
    l3_disk,
    spec_collapse,
    ttft_only,
    l2_proven,
    io_fallback,
)
_WATCHING: tuple[Rule, ...] = (metrics_missing, metrics_stale, rank0_only, metrics_dedup, launch_drift, launch_changed)

RULES: tuple[Rule, ...] = (rank_dead, rank_restarted, server_hung, *_GPU, *_HOST, *_PD, *_TIERS, *_WATCHING)

__all__ = ["NODE_HISTORY", "RANK_HISTORY", "RULES", "SELDOM_RANK_HISTORY", "SERVER_RUNNING", "Context", "Rule"]
