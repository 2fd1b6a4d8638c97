"""`ranktop plan` for a person: per rank, per node, the multiplication spelt out. Plain text for 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ranktop.finding import Finding
from ranktop.folding import folded
from ranktop.plan import GB, GIB, Plan, RankPlan
from ranktop.plan.field_names import KNOWN_FIELDS
from ranktop.plan.fit import Fit
from ranktop.plan.hostrules import Allowance
from ranktop.plan.machine import Machine, needed_bytes, node_of_ranks, pool_bytes

_WIDTH = 80
_LABEL, _HOW, _AMOUNT = 15, 37, 12


def plan_text(
    plan: Plan,
    findings: Sequence[Finding],
    fit: Fit | None,
    machine: Machine,
    allowance: Allowance,
    unread: Sequence[str] = (),
) -> str:
    """The whole page. A machine of which nothing is known has no block."""
    lines = [*_plan_blocks(plan), *_machine_block(plan, machine, allowance, unread)]
    lines += [*_section("Launch", _launch_lines(plan)), *finding_lines(findings, fit)]
    lines += _section("Notes", [f"- {note}" for note in plan.notes])
    return "\n".join(_printable(line) for line in lines)


def _printable(line: str) -> str:
    """Names and flags come from outside: no control character of theirs reaches the terminal."""
    return line if line.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in line)


def _plan_blocks(plan: Plan) -> Iterator[str]:
    yield from _head(plan)
    groups = _alike(plan.ranks)
    for ranks in groups[:1]:
        yield ""
        yield from _rank_block(plan, ranks)
    if len(groups) > 1:
        yield ""
        yield from _rank_table(plan.ranks)
    yield ""
    yield from _node_block(plan)
    if plan.launch.storage_backend:
        yield ""
        yield from _storage_block(plan)
    if plan.layer_split.active:
        yield ""
        yield from _layer_block(plan)


def _head(plan: Plan) -> Iterator[str]:
    launch = plan.launch
    sizes = [f"TP{launch.tp_size}"]
    sizes += [
        f"{name}{size}"
        for name, size in (
            ("PP", launch.pp_size),
            ("DP", launch.dp_size),
            ("CP", launch.attn_cp_size),
            ("DCP", launch.dcp_size),
        )
        if size > 1
    ]
    exact = "" if plan.sglang.exact else f" (computed as {plan.sglang.profile})"
    title = f"{plan.model.name}  SGLang {plan.sglang.version}{exact}  {launch.role}  {' '.join(sizes)}"
    yield from folded(title, _WIDTH, subsequent_indent="  ")
    if not launch.hicache:
        yield "HiCache is off: no host pools"
        return
    size = f"{launch.hicache_size_gb:g} GB a rank" if launch.hicache_size_gb else f"ratio {launch.hicache_ratio:g}"
    storage = f"  L3 {launch.storage_backend}" if launch.storage_backend else ""
    yield f"L2 {size}  {launch.kv_cache_dtype}  {launch.write_policy}  {launch.mem_layout}/{launch.io_backend}{storage}"


def _alike(ranks: Sequence[RankPlan]) -> list[list[RankPlan]]:
    """Ranks whose pools are the same, in order of the first of each."""
    groups: dict[object, list[RankPlan]] = {}
    for rank in ranks:
        key = (rank.host, rank.device, rank.layers.owned if rank.host is None else None)
        groups.setdefault(key, []).append(rank)
    return list(groups.values())


_TABLE_LINE = "  {rank:<22}{layers:>10}{primary:>11}{indexer:>11}{together:>11}{l1:>9}"


def _rank_table(ranks: Sequence[RankPlan]) -> Iterator[str]:
    """All ranks where they differ, in GB."""
    yield _TABLE_LINE.format(
        rank="all ranks, GB", layers="layers", primary="primary", indexer="indexer", together="together", l1="L1"
    )
    for rank in ranks:
        host = rank.host
        yield _TABLE_LINE.format(
            rank=rank.rank,
            layers=f"[{rank.layers.start},{rank.layers.end})",
            primary=_gb(host.primary_bytes if host is not None else None),
            indexer=_gb(host.indexer_allocated_bytes if host is not None else None),
            together=_gb(pool_bytes(host) if host is not None else None),
            l1=_gb(rank.device.pool_bytes),
        )


def _gb(size: int | None) -> str:
    return "-" if size is None else f"{size / GB:,.2f}"


def _rank_block(plan: Plan, ranks: list[RankPlan]) -> Iterator[str]:
    rank, host, device = ranks[0], ranks[0].host, ranks[0].device
    many = f"Each of {len(ranks)} ranks: {rank.rank} to {ranks[-1].rank}"
    yield _title(many if len(ranks) > 1 else f"Rank {rank.rank}")
    if host is not None:
        yield from _host_rows(plan, rank)
    yield _row("HBM per token", f"the L1 pool is charged {device.bytes_per_token:,} B", None)
    if device.pool_bytes is not None and device.pool_tokens is not None:
        yield _row("HBM L1 pool", f"{device.pool_tokens:,} tokens + 1 page", device.pool_bytes)
    if device.scratch_bytes:
        yield _row("  of it", "1 scratch layer", device.scratch_bytes)
    if device.staging_bytes:
        yield _row("HBM staging", "64 pages for page_first copies", device.staging_bytes)


def _host_rows(plan: Plan, rank: RankPlan) -> Iterator[str]:
    host = rank.host
    assert host is not None
    yield _row("row", f"{host.row_bytes:,} B a token and layer, {host.layers} layers", None)
    if host.tokens is None or host.pages is None:
        yield _row("host pools", f"{host.bytes_per_token:,} B a token + {host.index_bytes_per_token:,} B index", None)
        return
    yield _row("host primary", f"{host.tokens:,} tokens x {host.bytes_per_token:,} B", host.primary_bytes)
    if host.index_layers:
        page_bytes = plan.launch.page_size * host.index_bytes_per_token // host.index_layers
        how = f"{host.pages + 1:,} pages x {host.index_layers} x {page_bytes:,} B"
        yield _row("host indexer", how, host.indexer_allocated_bytes)
        yield _row("  as logged", f"{host.pages:,} pages, what SGLang checks", host.indexer_bytes)
    if host.draft_bytes:
        yield _row("host draft", "a pool of its own", host.draft_bytes + host.draft_indexer_bytes)
    if host.bookkeeping_bytes:
        per_token = host.bookkeeping_bytes // (host.logical_tokens or host.tokens)
        yield _row("bookkeeping", f"{per_token} B a token, in no check", host.bookkeeping_bytes)
    yield _row("host together", "", pool_bytes(host))


def _node_block(plan: Plan) -> Iterator[str]:
    node = plan.node
    yield _title(f"This node: {node.ranks} rank{'s' if node.ranks != 1 else ''}")
    if node.allocated_bytes is None:
        yield "  host pools: not known" if plan.launch.hicache else "  no host pools"
        return
    sizes = Counter(pool_bytes(rank.host) or 0 for rank in plan.ranks if rank.host is not None)
    for index, (size, count) in enumerate(sizes.items()):
        yield _row("" if index else "pools", f"{count} x {size / GB:,.2f} GB", size * count)
    total = sum(size * count for size, count in sizes.items())
    yield _row("reserve", "SGLang keeps it free in its check", node.reserve_bytes)
    yield _row("pools+reserve", "the sum that no version checks", total + node.reserve_bytes)
    yield _row("gate, 1 rank", "primary + indexer + reserve", node.per_rank_gate_bytes)
    yield _row("gate passes", "surely, with this much free", node.surely_fits_bytes)
    yield _row("gate fails", "surely, with less than this free", node.surely_fails_below_bytes)


def _machine_block(plan: Plan, machine: Machine, allowance: Allowance, unread: Sequence[str]) -> Iterator[str]:
    limit = machine.limit_bytes
    if limit is not None:
        yield ""
        yield _title("This host now" if machine.is_this_host else "A machine with this much free")
        total = "" if machine.total_bytes is None else f"of {machine.total_bytes / GIB:,.1f} GiB"
        yield _row("available", total, machine.available_bytes)
        if machine.cgroup_headroom_bytes is not None:
            yield _row("cgroup", "left under its limit", machine.cgroup_headroom_bytes)
        if machine.credited_bytes:
            yield _row("credited", "goes with the server replaced", machine.credited_bytes)
        needed = needed_bytes(plan)
        if needed is not None:
            yield _row("pools", "of all ranks", -needed)
            yield _row("other", allowance.other_source, -allowance.other_bytes)
            yield _row("margin", "left free", -allowance.margin_bytes)
            yield _row("left", "", limit - needed - allowance.total_bytes)
        yield from _memory_nodes(plan, machine)
        if machine.allowed_cpus is not None and machine.allowed_nodes is not None:
            nodes = ", ".join(map(str, machine.allowed_nodes))
            yield _row("allowed", f"{machine.allowed_cpus} CPUs; memory of node {nodes}", None)
    for text in unread:
        yield from folded(f"not read: {text}", _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _memory_nodes(plan: Plan, machine: Machine) -> Iterator[str]:
    homes = node_of_ranks(plan, machine)
    for node in machine.nodes if len(machine.nodes) > 1 else ():
        ranks = [rank.rank for rank, home in zip(plan.ranks, homes, strict=True) if home == node.node]
        how = f"headroom; {len(ranks)} ranks bind to it" if ranks else "headroom; no rank is known to bind"
        yield _row(f"node {node.node}", how, node.headroom_bytes)


def _storage_block(plan: Plan) -> Iterator[str]:
    yield (f"L3 prefetch: {plan.l3.policy}, {plan.l3.cache}, from {plan.l3.threshold_tokens:,} tokens")
    yield "  deadline      " + "  ".join(
        f"{int(tokens):,}: {seconds:g} s"
        for tokens, seconds in plan.l3.deadline_seconds.items()
        if int(tokens) <= 65536
    )


def _layer_block(plan: Plan) -> Iterator[str]:
    split = plan.layer_split
    yield (f"LayerSplit: {split.max_owned} owned + 1 scratch of {plan.model.layers} layers")
    text = "  ".join(f"CP{index} [{start},{end})" for index, (start, end) in enumerate(split.ranges))
    yield from folded(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield f"  at most {split.reduction_percent:.4f} % less L1, scratch included"


def _launch_lines(plan: Plan) -> list[str]:
    launch = plan.launch
    lines = [f"assumed  {text}" for text in launch.assumed]
    lines += [f"unknown  {flag}{_meant(flag)}" for flag in launch.unknown_flags]
    lines += [f"{row.verdict}  {row.rule}: {row.message}" for row in plan.eligibility if row.finding is None]
    return lines


def _meant(flag: str) -> str:
    """The flag of SGLang that is spelled much like it: SGLang itself refuses the one that was typed."""
    import difflib

    name = flag.partition("=")[0].removeprefix("--").replace("-", "_")
    near = difflib.get_close_matches(name, KNOWN_FIELDS, n=1, cutoff=0.8)
    return f" (did you mean --{near[0].replace('_', '-')}?)" if flag.startswith("--") and near else ""


def finding_lines(findings: Sequence[Finding], fit: Fit | None) -> Iterator[str]:
    """What would fit, then the findings, worst first."""
    order = ("critical", "breach", "warn", "info")
    lines: list[str] = []
    if fit is not None:
        lines.append(f"fit now  {fit.flag}: {fit.reason}" if fit.flag else f"fit now  none: {fit.reason}")
    for finding in sorted(findings, key=lambda finding: order.index(finding.severity)):
        lines.append(f"{finding.severity:<8} {finding.code}  {finding.message}")
        if finding.severity != "info" and finding.advice:
            lines.append(f"         -> {finding.advice}")
    yield from _section("Findings", lines)


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield title
    for line in lines:
        indent = 4 if line.startswith("- ") else 11
        yield from folded(line, _WIDTH, initial_indent="  ", subsequent_indent=" " * indent)


def _title(text: str) -> str:
    """A block's title with the units of its two right-hand columns."""
    left = _LABEL + _HOW + 2
    if len(text) > left:
        return text
    return f"{text:<{left}}{'GB':>{_AMOUNT}}{'GiB':>{_AMOUNT}}"


def _row(label: str, how: str, size: int | None) -> str:
    # A test-sized pool would be all zeros.
    digits = 2 if size is None or size == 0 or abs(size) >= GB // 10 else 4
    amounts = "" if size is None else f"{size / GB:>{_AMOUNT},.{digits}f}{size / GIB:>{_AMOUNT},.{digits}f}"
    return f"  {label:<{_LABEL}}{how:<{_HOW}}{amounts}".rstrip()
