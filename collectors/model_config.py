"""The model's `config.json`, read through the server's own root: the geometry of a model that is not built in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ranktop.plan import parse_launch
from ranktop.plan.models import guess_model
from ranktop.plan.plan import PlanError
from ranktop.sample import ModelConfig, NoData, Processes, ServerProcess, SourceError

MAX_BYTES = 4 << 20
_FOUND_PERIOD_SECONDS = 3600.0
_MISSING_PERIOD_SECONDS = 60.0


class ModelConfigCollector:
    """One server's model. Nothing to do for a model that ranktop knows by name."""

    name = "model"
    part = "model_configs"

    def __init__(self, server: str, proc_root: str | os.PathLike[str] = "/proc") -> None:
        self.server: str | None = server
        self._id = server
        self._proc = os.fspath(proc_root)
        self.period_seconds = 1.0

    def read(self, processes: Processes | None, now: float) -> ModelConfig:
        """Raises NoData where there is nothing to read, SourceError for a file that is no config."""
        self.period_seconds = _MISSING_PERIOD_SECONDS
        main = next((known for known in processes.servers if known.id == self._id), None) if processes else None
        if main is None or main.pid is None:
            raise NoData("no process of this server here", "absent")
        model = model_path(main)
        if model is None:
            raise NoData("its command line names no model", "absent")
        self.period_seconds = _FOUND_PERIOD_SECONDS
        if guess_model(model) is not None:
            raise NoData(f"{model} is built in", "built_in")
        environment = _environment(f"{self._proc}/{main.pid}/environ")
        for path in candidates(model, f"{self._proc}/{main.pid}", environment):
            try:
                text = _bounded(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise SourceError(f"{path}: {error.strerror} (same user, CAP_SYS_PTRACE or root)") from error
            return ModelConfig(self._id, path, _decoded(text, path))
        self.period_seconds = _MISSING_PERIOD_SECONDS
        raise NoData(
            f"no config.json of {model} found below /proc/{main.pid}/root (give --launch and a plan)", "absent"
        )


def model_path(main: ServerProcess) -> str | None:
    """`--model-path` of the launch, None where it is not given or the line is no launch."""
    try:
        path = parse_launch(list(main.argv)).flags.get("model_path")
    except PlanError:
        return None
    return path if isinstance(path, str) and path else None


def candidates(model: str, process: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Where a model's config can be: a folder, or a snapshot in the hub's cache (huggingface_hub's layout)."""
    if model.startswith("/"):
        yield f"{process}/root{model}/config.json"
        return
    yield f"{process}/cwd/{model}/config.json"
    home = environment.get("HF_HOME") or f"{environment.get('HOME', '/root')}/.cache/huggingface"
    hub = environment.get("HF_HUB_CACHE") or f"{home}/hub"
    snapshots = f"{process}/root{hub}/models--{model.replace('/', '--')}/snapshots"
    try:
        names = sorted(os.listdir(snapshots))
    except OSError:
        return
    for name in names:
        yield f"{snapshots}/{name}/config.json"


def _environment(path: str) -> dict[str, str]:
    try:
        with open(path, "rb") as file:
            pairs = (pair.partition(b"=") for pair in file.read(1 << 20).split(b"\0"))
            return {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, _, value in pairs}
    except OSError:
        return {}


def _bounded(path: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise SourceError(f"{path}: larger than {MAX_BYTES} bytes, no config.json is", "malformed")
    return text


def _decoded(text: bytes, path: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceError(f"{path}: no JSON object: {error}", "malformed") from error
