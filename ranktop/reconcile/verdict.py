"""What the reconciliation says of one sample: lines, tiers, findings. Every face draws from this and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from ranktop.finding import Finding
from ranktop.lazy import lazy
from ranktop.plan.plan import Plan
from ranktop.reconcile.calibration import Calibration
from ranktop.sample import Sample

Status = Literal["ok", "over", "under", "unknown"]
Source = Literal["measured", "reported", "logged", "computed", "inferred", "simulated"]


class Line(Struct, frozen=True, array_like=True, gc=False):
    """One quantity: planned against seen. `seen` None has status `unknown` and its reason in `detail`."""

    line: str
    planned: float | int | None = None
    seen: float | int | None = None
    unit: str = "bytes"
    difference: float | int | None = None
    status: Status = "unknown"
    source: Source | None = None
    detail: str = ""
    mapped_bytes: int | None = None
    group: bool = False
    """A value of the rank's group, not the rank's own."""
    stale: bool = False


class TierShares(Struct, frozen=True):
    """Where prefill tokens came from over a window. Shares are ratios 0..1, None when no token was prefilled."""

    device_hit: float | None = None
    host_hit: float | None = None
    storage_hit: float | None = None
    miss: float | None = None
    source: Source | None = None
    window_tokens: int | None = None
    window_seconds: float | None = None
    detail: str = ""


class TransferRates(Struct, frozen=True):
    """Node totals of what moved between tiers, bytes a second over the last two pages."""

    backup_bytes_per_second: float | None = None
    load_back_bytes_per_second: float | None = None
    prefetch_bytes_per_second: float | None = None
    source: Source | None = None


class Traffic(Struct, frozen=True):
    """What moved through a server's tiers: logical tokens a second, each counted once however many ranks hold it.

    None: not counted here, or no page before.
    """

    backup_tokens_per_second: float | None = None
    load_back_tokens_per_second: float | None = None
    evicted_tokens_per_second: float | None = None
    dropped_tokens_per_second: dict[str, float] = {}
    """By `reason/pool`, dropped and rejected."""
    prefetched_tokens_per_second: float | None = None
    storage_backup_tokens_per_second: float | None = None
    backup_copy_bytes_per_second: float | None = None
    """Mean bandwidth of a rank's copies while they run: bytes over the time spent copying."""
    load_back_copy_bytes_per_second: float | None = None
    window_seconds: float | None = None


class Prefetch(Struct, frozen=True):
    """One request's read from storage, as its ranks logged it. All must hold a token for it to be of use, so token
    counts are the fewest of any rank."""

    request: str
    at_unix_seconds: float
    """When the last rank was through."""
    outcome: str
    """`success`, `dropped`, or why it was declined; empty where the version logs none."""
    ranks: int
    requested_tokens: int | None = None
    completed_tokens: int | None = None
    loaded_tokens: int | None = None
    occupied_tokens: int | None = None
    """Of L2, by all reads under way."""


class ServiceLatency(Struct, frozen=True):
    """Quantiles over the window, in seconds unless the field says otherwise."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Service(Struct, frozen=True):
    """How the server serves."""

    ttft_seconds: ServiceLatency = ServiceLatency()
    inter_token_seconds: ServiceLatency = ServiceLatency()
    e2e_seconds: ServiceLatency = ServiceLatency()
    tokens_per_second: float | None = None
    running: int | None = None
    queued: int | None = None
    http_active: int | None = None


class Load(Struct, frozen=True):
    """What a server took on in the window. Rates are None without a page before; requests are counted once a group."""

    requests_per_second: float | None = None
    prompt_tokens_per_second: float | None = None
    mean_queue_seconds: float | None = None
    retracted_requests: int | None = None
    aborted_requests: int | None = None
    window_seconds: float | None = None


class Acceptance(Struct, frozen=True):
    """Speculative decoding. `length_tokens`: accepted and bonus tokens a step, `ratio`: accepted drafts of all."""

    length_tokens: float | None = None
    ratio: float | None = None
    verify_steps: float | None = None
    """Verify steps in the window, None where they are not counted."""


class RankTransfers(Struct, frozen=True):
    """Means of one rank's transfers in the window. A rank that observed none has no histogram: None."""

    mean_milliseconds: float | None = None
    mean_gib_per_second: float | None = None


class Handoff(Struct, frozen=True):
    """Between prefill and decode, of one server. Counts are of the window, since the start without a page before."""

    role: str | None = None
    """None for a server that hands nothing off."""
    queues: dict[str, int] = {}
    """Requests by queue of the role, every DP group counted once. Frozen until 0.5.22 while nothing runs."""
    bootstrap_milliseconds: ServiceLatency = ServiceLatency()
    transfer_milliseconds: ServiceLatency = ServiceLatency()
    bootstrap_failures: int | None = None
    """Failed requests, counted once though every rank of a group counts them. None before the first."""
    transfer_failures: int | None = None
    retries: int | None = None
    transfers: int | None = None
    """Of the rank with the most: under LayerSplit every rank takes part in every transfer."""
    bytes_per_second: float | None = None
    ranks: dict[str, RankTransfers] = {}
    """By the labels of scheduler series, `dp/pp/tp`."""
    window_seconds: float | None = None


class ServerVerdict(Struct, frozen=True):
    """One server of the node."""

    id: str
    pid: int | None
    url: str | None
    version: str | None
    model: str | None
    role: str | None
    ranks: int
    plan: Plan | None = None
    plan_origin: str | None = None
    """Where the launch came from: server_info, log, command line, given, inferred from the log's pool sizes."""
    plan_error: str | None = None
    calibration: Calibration | None = None
    started_unix_seconds: float | None = None
    is_ready: bool | None = None
    tiers: TierShares = TierShares()
    transfers: TransferRates = TransferRates()
    service: Service = Service()
    load: Load = Load()
    acceptance: Acceptance = Acceptance()
    traffic: Traffic = Traffic()
    handoff: Handoff = Handoff()
    prefetches: tuple[Prefetch, ...] = ()
    """The newest reads from storage that the log tells of, newest first."""


class Phase(Struct, frozen=True, array_like=True):
    """A phase that a server, or one of its ranks, has reached (`phases.PHASES`)."""

    phase: str
    at_unix_seconds: float
    server: str
    rank: str | None = None
    source: Source = "logged"
    at_or_before: bool = False
    """It was reached before ranktop looked."""


class PhasePeak(Struct, frozen=True, gc=False):
    """The highest HBM readings while a phase was the newest. The GPU's holds all processes and the driver's reserve."""

    phase: str
    process_bytes: int | None = None
    gpu_bytes: int | None = None


POOL_LINES = ("host.primary", "host.indexer", "host.draft", "host.draft_indexer")


class RankVerdict(Struct, frozen=True, array_like=True, dict=True):
    """One rank of the node, with all its lines."""

    server: str
    rank: str
    pid: int | None
    gpu: int | None
    cuda_index: int | None
    numa: int | None
    state: str | None
    lines: tuple[Line, ...] = ()
    peaks: tuple[PhasePeak, ...] = ()

    def line(self, name: str) -> Line:
        """The line of that name; an empty `unknown` one where the rank has none."""
        return self._by_name.get(name) or Line(name)

    def seen(self, names: Iterable[str]) -> list[float | int | None]:
        """What is seen of these lines; None for one that the rank has not, too."""
        known = self._by_name
        return [None if (line := known.get(name)) is None else line.seen for name in names]

    @lazy
    def pools(self) -> tuple[Line, ...]:
        """The lines of its host pools (L2)."""
        return tuple([self._by_name[name] for name in POOL_LINES if name in self._by_name])

    @lazy
    def _by_name(self) -> dict[str, Line]:
        return {line.line: line for line in self.lines}


class NodeVerdict(Struct, frozen=True, dict=True):
    """Lines of the node as a whole."""

    lines: tuple[Line, ...] = ()

    def line(self, name: str) -> Line:
        """The line of that name; an empty `unknown` one where the node has none."""
        return self._by_name.get(name) or Line(name)

    @lazy
    def _by_name(self) -> dict[str, Line]:
        return {line.line: line for line in self.lines}


class Verdict(Struct, frozen=True):
    """One sample judged. `findings` are grouped: the same finding on several ranks is one."""

    sample: Sample
    servers: tuple[ServerVerdict, ...]
    node: NodeVerdict
    ranks: tuple[RankVerdict, ...]
    tiers: TierShares
    transfers: TransferRates
    findings: tuple[Finding, ...]
    headline: str
    headline_severity: str | None = None
    within_plan_since: float | None = None
    phases: tuple[Phase, ...] = ()
    routers: dict[str, ServiceLatency] = {}
    """Seconds from admission, by the URL of a router whose page is read."""
