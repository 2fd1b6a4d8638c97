"""Every number that a rule compares with, in one place (the `[thresholds]` section of the configuration)."""

from __future__ import annotations

from msgspec import Struct


class Thresholds(Struct, frozen=True):
    """Defaults of findings.md."""

    pool_tolerance_ratio: float = 0.005
    """HOST-POOL-OVER/UNDER: share of the plan; one page a layer and huge page rounding are always allowed."""
    numa_far_percent: float = 5.0
    headroom_critical_seconds: float = 300.0
    """HOST-HEADROOM: time to the limit below which it is critical."""
    headroom_trend_seconds: float = 60.0
    """HOST-HEADROOM: the window over which the trend is taken."""
    headroom_trend_share: float = 0.10
    """HOST-HEADROOM: a trend counts only once less than this share of the limit is left."""
    event_seconds: float = 3600.0
    """How long something that happened once (a kill, an XID, a failed pin) keeps its finding open."""
    cgroup_share: float = 0.90
    """HOST-CGROUP: share of the effective limit that the working set may take."""
    counter_seconds: float = 900.0
    """HOST-CGROUP, HOST-OOM-KILL: how long ago a count may have risen."""
    pressure_percent: float = 5.0
    """HOST-PRESSURE: PSI avg10, `some` (warn) and `full` (critical)."""
    sustained_seconds: float = 30.0
    """HOST-PRESSURE, HOST-SWAP, HOST-NOT-PINNED: for how long."""
    swap_out_bytes_per_second: float = 1e6
    leak_seconds: float = 1800.0
    """HOST-ANON-LEAK: time after ready, and the window of the trend."""
    leak_bytes_per_hour: float = 1e9
    leak_r2: float = 0.9
    plateau_ratio: float = 0.02
    """HOST-ANON-LEAK, HOST-UNREACHABLE-POOL: how much of its total L2 may move and still be at a plateau."""
    unreachable_share: float = 0.75
    """HOST-UNREACHABLE-POOL: a plateau below this share of the total."""
    unreachable_seconds: float = 600.0
    unexplained_bytes: float = 2e9
    """HOST-SHM-UNEXPLAINED: resident shared memory beyond the plan, info."""
    unexplained_warn_bytes: float = 10 * 2**30
    """HOST-SHM-UNEXPLAINED: as much as the start-up reserve, warn."""
    teardown_seconds: float = 10.0
    """HOST-TEARDOWN: for how long a rank is in D, with nothing that says it ends."""
    ending_seconds: float = 4.0
    """HOST-TEARDOWN, HBM-ORPHAN: for how long a rank is dead, gone or without its server."""
    exit_grace_seconds: float = 3.0
    """RANK-DEAD: by how much a main process may outlive all its ranks."""
    exit_seconds: float = 600.0
    """RANK-DEAD: how long an orderly end is told; and how long before a death its reason may lie."""
    restart_seconds: float = 900.0
    """RANK-RESTARTED: how long it is told."""
    copy_share: float = 0.8
    """NUMA-REMOTE: share of its peers' copy bandwidth below which a remote rank is a breach."""
    hbm_tolerance_bytes: float = 1.5 * 2**30
    """HBM-OVER, HBM-SKEW."""
    hbm_rising_seconds: float = 600.0
    hbm_rising_r2: float = 0.9
    """HBM-OVER: a rise, and not one step."""
    foreign_hbm_bytes: float = 2**30
    """HBM-ORPHAN: HBM of processes that are no rank, info."""
    xid_cascade_seconds: float = 60.0
    """GPU-XID: victims come within this time of their root."""
    tier_window_seconds: float = 60.0
    """L2-PROVEN, L2-PHANTOM-HIT, L2-DROPPED, TIER-INCONSISTENT: the window."""
    tier_difference_ratio: float = 0.05
    """L2-PHANTOM-HIT, TIER-INCONSISTENT, L2-GAUGE-LIES."""
    tier_min_tokens: float = 512.0
    """Tokens below which a difference between two counters is no evidence."""
    dropped_share: float = 0.01
    """L2-DROPPED: share of what was to be written."""
    l2_idle_seconds: float = 600.0
    """L2-NEVER-READ, L2-WHY, L2-CHURN: the window."""
    l2_hit_share: float = 0.005
    """L2-WHY: a hit share below this is none."""
    l2_min_input_tokens: float = 2048.0
    """L2-WHY: prefill tokens in the window below which there is no traffic."""
    repeats_share: float = 0.05
    """L2-NEVER-READ: share of prefill found in L1 that proves repeats."""
    l2_full_share: float = 0.95
    churn_read_share: float = 0.05
    """L2-CHURN: reads below this share of the writes."""
    prefetch_window_seconds: float = 60.0
    """L3-PREFETCH-EMPTY, L3-DEADLINE, L3-RANK-SKEW: one window."""
    prefetch_min_requests: int = 10
    """L3-PREFETCH-EMPTY: logged prefetches of one rank that all brought nothing."""
    prefetch_budget_seconds: float | None = None
    """L3-DEADLINE: how long a request may wait for storage. None: no budget is set."""
    skew_min_tokens: float = 1024.0
    """L3-RANK-SKEW."""
    split_input_tokens: float = 65536.0
    """L3-ATTACH-SPLIT: prefill of a DP group after which it must have written to storage."""
    disk_warn_share: float = 0.10
    """L3-DISK: share of space or inodes left, warn."""
    disk_critical_share: float = 0.03
    disk_trend_r2: float = 0.9
    """L3-DISK: how straight a fall must be to be told."""
    ttft_only_ratio: float = 1.1
    """TIER-TTFT-ONLY: how much slower the whole request or its decoding is, and how much faster its first token."""
    ttft_only_requests: float = 50.0
    spec_ratio: float = 0.7
    """SPEC-COLLAPSE."""
    spec_verify_steps: float = 200.0
    spec_window_seconds: float = 60.0
    spec_baseline_seconds: float = 60.0
    """SPEC-COLLAPSE: the least time at the same load that makes a baseline."""
    stuck_seconds: float = 15.0
    """PD-STUCK."""
    pd_timeout_seconds: float = 300.0
    """SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT and _WAITING_TIMEOUT, by default."""
    pd_failure_seconds: float = 60.0
    """PD-FAILURES, PD-DUPLICATE: the window."""
    pd_peer_transfers: float = 20.0
    """PD-RANK-MISSING: transfers of its peers after which a rank without any is missing."""
    stale_seconds: float = 30.0
    """METRICS-STALE."""
    hung_seconds: float = 60.0
    """SERVER-HUNG; at least three metrics pages."""
    hung_pages: int = 3
    attach_seconds: float = 30.0
    """L3-ATTACH-SPLIT, LAYER-NO-COMM: how long ranks may be apart in what they log."""
    close_after_updates: int = 3
    """A finding closes after it has been clear for so many updates of its slowest input."""
