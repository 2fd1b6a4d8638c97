"""What a Prometheus server knows of kills: node_exporter, cAdvisor and kube-state-metrics, where they are scraped."""

from __future__ import annotations

import logging
from typing import Any

from ranktop.why.evidence import Reading, Series

TIMEOUT_SECONDS = 2
MAX_SERIES = 50

QUERIES = {
    "kills counted by the kernel (node_exporter)": "increase(node_vmstat_oom_kill[{seconds}s]) > 0",
    "kills in containers (cAdvisor)": 'increase(container_oom_events_total{{container!=""}}[{seconds}s]) > 0',
    "containers whose last end was OOMKilled (kube-state-metrics)": (
        'kube_pod_container_status_last_terminated_reason{{reason="OOMKilled"}} == 1'
    ),
}


def ask(url: str, since_seconds: float) -> tuple[list[Series], Reading]:
    """One instant query each, no retries. The server may know many nodes: which one is told by the labels."""
    import requests
    from prometheus_api_client.exceptions import PrometheusApiClientException
    from prometheus_api_client.prometheus_connect import PrometheusConnect
    from urllib3.util.retry import Retry

    # It logs every request that fails, beside raising.
    logging.getLogger("prometheus_api_client").setLevel(logging.CRITICAL)
    client = PrometheusConnect(url=url, retry=Retry(total=0), timeout=TIMEOUT_SECONDS)
    source = f"Prometheus {url}"
    found: list[Series] = []
    try:
        for told, query in QUERIES.items():
            answer = client.custom_query(query.format(seconds=int(since_seconds)))
            found += [series for item in answer[:MAX_SERIES] if (series := _series(told, item)) is not None]
    except (requests.RequestException, PrometheusApiClientException, ValueError) as problem:
        said = " ".join(str(problem).split())[:160]
        return found, Reading(source, "failed", f"{said} (check the address; ranktop asks once, for 2 s)")
    finally:
        client.close()
    return found, Reading(source, "read", f"{len(found)} series")


def _series(told: str, item: dict[str, Any]) -> Series | None:
    labels = item.get("metric", {})
    try:
        value = float(item["value"][1])
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    names = ("instance", "node", "namespace", "pod", "container")
    return Series(told, ", ".join(f"{name}={labels[name]}" for name in names if name in labels), value)
