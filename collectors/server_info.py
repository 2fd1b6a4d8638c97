"""`/server_info` and `/model_info`: resolved server arguments and the memory that SGLang reports for itself.

`/server_info` makes a round trip through every DP rank's scheduler and has no time-out of its own, so it is asked once
at attach and once an hour. It carries the API keys in clear text: they are dropped here, at the door.
"""

from __future__ import annotations

from typing import Any

import msgspec

from collectors.http import Answer, bearer, failure, get
from collectors.json_values import number, whole, within_64_bits
from collectors.secrets import without_secrets
from ranktop.sample import Processes, ServerInfo, SourceError

RETRY_SECONDS = 5.0
SETTLED_SECONDS = 3600.0

_DEADLINE_SECONDS = 10.0
_NOT_ARGUMENTS = frozenset(
    {"internal_states", "startup_time", "version", "kv_events", "kv_event_sources", "status", "frontend"}
)


class ServerInfoCollector:
    """Asks until the server answers, then hourly; a restarted main process is asked again at once."""

    name = "server"
    part = "infos"

    def __init__(self, server: str, url: str) -> None:
        self.server: str | None = server
        self._id = server
        self._url = url.rstrip("/")
        self._is_settled = False

    @property
    def period_seconds(self) -> float:
        """5 s until the first answer, an hour after it (the poller makes a new collector for a restarted server)."""
        return SETTLED_SECONDS if self._is_settled else RETRY_SECONDS

    def read(self, processes: Processes | None, now: float) -> ServerInfo:
        """Both endpoints and, from 0.5.23, `/ready`. Raises SourceError with the code of what came back."""
        self._is_settled = False
        headers = bearer()
        info = _json(get(f"{self._url}/server_info", headers=headers, deadline_seconds=_DEADLINE_SECONDS))
        try:
            model = _json(get(f"{self._url}/model_info", headers=headers, deadline_seconds=_DEADLINE_SECONDS))
        except SourceError:
            model = {}
        found = parse(self._id, info, model)
        if found.is_ready is None:
            found = msgspec.structs.replace(found, is_ready=self._asked_ready())
        admin = bearer(name="RANKTOP_ADMIN_API_KEY")
        if admin:
            found = msgspec.structs.replace(found, storage_backend=self._attached_backend(admin))
        self._is_settled = True
        return found

    def _attached_backend(self, admin: dict[str, str]) -> str | None:
        """The L3 backend that the HTTP process believes attached. It mirrors a request, and proves nothing of ranks."""
        try:
            url = f"{self._url}/hicache/storage-backend"
            return _text(
                _json(get(url, headers=admin, deadline_seconds=_DEADLINE_SECONDS)).get("hicache_storage_backend")
            )
        except SourceError:
            return None

    def _asked_ready(self) -> bool | None:
        """`/ready` (0.5.23) is a pure state check. Never `/health`: that generates tokens."""
        try:
            status = get(f"{self._url}/ready", deadline_seconds=_DEADLINE_SECONDS).status
        except SourceError:
            return None
        return {200: True, 503: False}.get(status)


def parse(server: str, info: dict[str, Any], model: dict[str, Any]) -> ServerInfo:
    """ServerInfo from the two decoded answers. Accepts 0.5.14 to 0.5.23: `graph` is a number or a dict by phase."""
    safe: dict[str, Any] = within_64_bits(without_secrets({**info, "internal_states": None}))
    model = without_secrets(model)
    states = info.get("internal_states")
    first = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    memory = first.get("memory_usage")
    memory = memory if isinstance(memory, dict) else {}
    architectures = model.get("architectures")
    status = info.get("status")
    return ServerInfo(
        server=server,
        version=_text(info.get("version")),
        args={name: value for name, value in safe.items() if name not in _NOT_ARGUMENTS},
        max_total_num_tokens=whole(info.get("max_total_num_tokens")) or whole(memory.get("token_capacity")),
        weight_gib=number(memory.get("weight")),
        kv_cache_gib=number(memory.get("kvcache")),
        graph_gib=_graph_gib(memory.get("graph")),
        model_path=_text(model.get("model_path")) or _text(safe.get("model_path")),
        served_model_name=_text(model.get("served_model_name")) or _text(safe.get("served_model_name")),
        architectures=tuple(str(name) for name in architectures) if isinstance(architectures, list) else (),
        model_type=_text(model.get("model_type")),
        is_ready=True if status == "ready" else None,
    )


def _json(answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        raise failure(answer)
    try:
        found = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SourceError(f"GET {answer.url}: 200, but not a JSON object: is this SGLang's HTTP port?", "bad_answer")
    return found


def _graph_gib(graph: Any) -> float | None:
    if isinstance(graph, dict):
        phases = [size for size in map(number, graph.values()) if size is not None]
        return sum(phases) if phases else None
    return number(graph)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
