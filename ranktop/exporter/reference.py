"""The metric reference. `python -m ranktop.exporter.reference` prints docs/metrics.md."""

from __future__ import annotations

import sys

from ranktop.exporter.metrics import LINES, METRICS, SCOPES, UNITS, line_metric

LINE_HELP: dict[str, tuple[str, str]] = {
    "hbm.total": ("bytes", "HBM of the rank's GPU"),
    "hbm.free": ("bytes", "free HBM of the rank's GPU"),
    "hbm.process": ("bytes", "HBM of the rank's process, by NVML"),
    "hbm.weights": ("bytes", "weights, as SGLang reports them"),
    "hbm.kv": ("bytes", "L1 KV pool"),
    "hbm.scratch": ("bytes", "LayerSplit scratch layers"),
    "hbm.staging": ("bytes", "staging buffers of the host transfer"),
    "hbm.graphs": ("bytes", "CUDA graphs"),
    "hbm.rest": ("bytes", "what is left of the process's HBM"),
    "hbm.torch": ("bytes", "the torch allocator's own count; no public source today"),
    "hbm.peak_process": ("bytes", "highest reading of hbm.process"),
    "hbm.peak_gpu": ("bytes", "highest reading of the GPU's used HBM"),
    "host.primary": ("bytes", "L2 KV pool in pinned host memory"),
    "host.indexer": ("bytes", "L2 pool of DSA index keys"),
    "host.draft": ("bytes", "L2 pool of the draft model"),
    "host.draft_indexer": ("bytes", "L2 index keys of the draft model"),
    "host.bookkeeping": ("bytes", "host memory beside the pools, by the plan"),
    "host.pinned": ("bytes", "pages pinned, where the driver counts them"),
    "host.anon": ("bytes", "anonymous memory of the rank"),
    "host.rss": ("bytes", "resident memory of the rank, pools included"),
    "host.peak": ("bytes", "highest resident memory, by the kernel"),
    "numa.local": ("percent", "sampled pool pages on the NUMA node of the rank's GPU"),
    "l1.tokens": ("tokens", "capacity of the GPU pool"),
    "l1.used": ("tokens", "GPU pool in use"),
    "l1.evictable": ("tokens", "GPU pool that may be evicted"),
    "l1.available": ("tokens", "GPU pool that is free"),
    "l2.used": ("tokens", "host pool in use"),
    "l2.total": ("tokens", "capacity of the host pool"),
    "layers.owned": ("count", "layers whose cache the rank holds"),
    "rate.load_back": ("bytes_per_second", "L2 to L1"),
    "rate.backup": ("bytes_per_second", "L1 to L2"),
    "rate.copy": ("bytes_per_second", "bandwidth while copying"),
    "rate.evict": ("tokens_per_second", "evicted from L1"),
    "rate.dropped": ("tokens_per_second", "dropped instead of written to L2"),
    "rate.prefetch": ("tokens_per_second", "L3 to L2"),
    "rate.storage_backup": ("tokens_per_second", "L2 to L3"),
    "spec.accept_length": ("count", "tokens a verify step of speculative decoding"),
    "spec.accept_rate": ("ratio", "share of draft tokens that were accepted"),
    "pd.registered": ("count", "registrations at the bootstrap server"),
    "pd.transfers": ("count", "KV transfers between prefill and decode since the start"),
    "pd.failures": ("count", "failed bootstraps and transfers since the start"),
    "host.total": ("bytes", "MemTotal"),
    "host.available": ("bytes", "MemAvailable"),
    "host.cgroup": ("bytes", "working set under the cgroup limit that leaves least; planned is that limit"),
    "host.reserve": ("bytes", "what SGLang's start-up check keeps free"),
    "host.pools": ("bytes", "host pools of all ranks"),
    "host.hugepages": ("bytes", "huge pages reserved"),
    "host.pressure": ("percent", "time that some task waited for memory (PSI some avg10)"),
    "numa.N.headroom": ("bytes", "what can still be allocated on NUMA node N"),
    "numa.N.pools": ("bytes", "host pools of the ranks bound to NUMA node N"),
    "requests.running": ("count", "requests running, all servers"),
    "requests.queued": ("count", "requests queued, all servers"),
}
"""Line -> its unit on screen and in JSON, and what it is."""

_NODE_FIRST = "host.total"


def markdown() -> str:
    """The reference as a page."""
    parts = [
        "# Metrics of `ranktop exporter`\n",
        "Made by `python -m ranktop.exporter.reference`.\n",
        "All are gauges. Ratios are 0..1, bytes are bytes. A quantity that is not seen has no series: it is never 0. "
        "A value that has aged has none either, and `ranktop_source_up` says which source is late. A label whose "
        "value is empty is absent.\n",
        "## Lines: planned against seen\n",
        "Every line of a rank (labels `server`, `rank`, `line`) and of the node (label `line`) has up to four series: "
        "what was seen, what the plan says, the difference, and the status. The unit ends the name.\n",
        "| metric | what |\n|---|---|",
    ]
    for scope in SCOPES:
        units = ", ".join(f"`{line_metric(scope, 'seen', unit)}`" for unit in _units())
        parts.append(f"| {units} | seen, of the {scope} |")
        parts.append(f"| the same with `planned` and `difference` for `seen` | plan, and seen minus plan ({scope}) |")
        status = LINES[f"ranktop_{scope}_status"]
        parts.append(f"| `{status.name}` | {status.help} |")
    for title, lines in (("rank", _names(node=False)), ("node", _names(node=True))):
        parts.append(f"\n### Lines of a {title}\n\n| line | unit of the metric | what |\n|---|---|---|")
        parts += [f"| `{name}` | {_unit(LINE_HELP[name][0])} | {LINE_HELP[name][1]} |" for name in lines]
    parts.append("\n## The others\n\n| metric | labels | what |\n|---|---|---|")
    for metric in METRICS:
        if metric.name not in LINES:
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            parts.append(f"| `{metric.name}` | {labels} | {metric.help} |")
    parts.append("\nThe codes of `ranktop_finding` are those of [findings.md](findings.md).")
    return "\n".join(parts) + "\n"


def _units() -> list[str]:
    """One unit for every suffix."""
    return list({suffix: unit for unit, (suffix, _) in UNITS.items()}.values())


def _unit(unit: str) -> str:
    return UNITS[unit][0].removeprefix("_").replace("_", " ") or "none"


def _names(*, node: bool) -> list[str]:
    names = list(LINE_HELP)
    first = names.index(_NODE_FIRST)
    return names[first:] if node else names[:first]


if __name__ == "__main__":
    sys.stdout.write(markdown())
