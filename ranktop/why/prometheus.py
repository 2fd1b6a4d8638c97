"""What a Prometheus server knows of kills: node_exporter, cAdvisor and kube-state-metrics, where they are scraped."""

from __future__ import annotations

from ranktop.sample import SourceError
from ranktop.why.evidence import Reading, Series

TIMEOUT_SECONDS = 2.0
MAX_SERIES = 50

QUERIES = {
    "kills counted by the kernel (node_exporter)": "increase(node_vmstat_oom_kill[{seconds}s]) > 0",
    "kills in containers (cAdvisor)": 'increase(container_oom_events_total{{container!=""}}[{seconds}s]) > 0',
    "containers whose last end was OOMKilled (kube-state-metrics)": (
        'kube_pod_container_status_last_terminated_reason{{reason="OOMKilled"}} == 1'
    ),
}
_LABELS = ("instance", "node", "namespace", "pod", "container")


def ask(url: str, since_seconds: float) -> tuple[list[Series], Reading]:
    """One instant query each, no retries. The server may know many nodes: which one is told by the labels."""
    # It imports requests, which only this option needs.
    from collectors.prometheus import Access, Prometheus

    client = Prometheus(Access(url, timeout_seconds=TIMEOUT_SECONDS))
    found: list[Series] = []
    try:
        for told, query in QUERIES.items():
            rows = client.instant(query.format(seconds=int(since_seconds))).rows
            found += [Series(told, _named(row.labels), row.value) for row in rows[:MAX_SERIES]]
    except SourceError as problem:
        return found, Reading("Prometheus", "failed", str(problem))
    finally:
        client.close()
    return found, Reading("Prometheus", "read", f"{len(found)} series of {url}")


def _named(labels: dict[str, str]) -> str:
    return ", ".join(f"{name}={labels[name]}" for name in _LABELS if name in labels)
