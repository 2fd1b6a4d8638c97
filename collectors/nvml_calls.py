"""NVML calls that may fail one by one, and the two that have several versions: memory and processes."""

from __future__ import annotations

from typing import Any, NamedTuple

from collectors import nvml_session as codes
from collectors.nvml_session import word_of
from ranktop.sample import GpuProcess

FATAL = (codes.GPU_IS_LOST, codes.RESET_REQUIRED, codes.UNINITIALIZED)
"""Codes that end the reading of a device: every further call would say the same, perhaps after seconds."""

NOT_AVAILABLE = (1 << 64) - 1
_MEMORY_V2 = 0x02000028
_NO_INSTANCE = 0xFFFFFFFF
_PROCESS_CALLS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")


class Memory(NamedTuple):
    """Device memory in bytes; `reserved_bytes` is None where the driver folds it into used."""

    total_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    reserved_bytes: int | None = None


class Calls:
    """Remembers what a kind of device does not support, and what failed in this reading."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.unsupported: dict[str, str] = {}
        self.failed: dict[str, str] = {}

    @property
    def detail(self) -> str:
        """One line that names everything that is missing and why."""
        return "; ".join(f"{what}: {why}" for what, why in (self.unsupported | self.failed).items())

    def ask(self, what: str, call: Any, *arguments: Any) -> Any:
        """The answer, or None and a word about why. Raises NVMLError with a code of `FATAL`."""
        if what in self.unsupported:
            return None
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            if error.value in FATAL:
                raise
            if error.value in (codes.NOT_SUPPORTED, codes.FUNCTION_NOT_FOUND):
                self.unsupported[what] = word_of(error.value)
            else:
                self.failed[what] = word_of(error.value)
            return None

    def memory(self, handle: Any) -> Memory:
        """Memory v2 (used is without reserved), else v1. A GPU that shares the host's memory has none of its own."""
        get = self._nvml.nvmlDeviceGetMemoryInfo
        info = self.ask("memory", get, handle, _MEMORY_V2)
        has_reserved = info is not None
        if self.unsupported.get("memory") == word_of(codes.FUNCTION_NOT_FOUND):
            info = self.ask("memory v1", get, handle)
        if info is None:
            return Memory()
        if not info.total:
            self.unsupported["memory"] = "none of its own, it uses the host's"
            return Memory()
        return Memory(int(info.total), int(info.used), int(info.free), int(info.reserved) if has_reserved else None)

    def processes(self, handle: Any) -> tuple[GpuProcess, ...] | None:
        """Compute processes, None where NVML does not tell."""
        for name in _PROCESS_CALLS:
            found = self._retried(name, handle)
            if found is not None:
                return tuple(
                    GpuProcess(
                        pid=process.pid,
                        used_bytes=process.usedGpuMemory,
                        gpu_instance_id=process.gpuInstanceId if process.gpuInstanceId != _NO_INSTANCE else None,
                    )
                    for process in found
                )
            if name not in self.unsupported:
                return None
        return None

    def _retried(self, name: str, handle: Any) -> Any:
        """The list can outgrow the buffer between the two calls that pynvml makes: three tries."""
        for _ in range(3):
            found = self.ask(name, getattr(self._nvml, name), handle)
            if found is not None:
                self.failed.pop(name, None)
                return found
            if self.failed.get(name) != word_of(codes.INSUFFICIENT_SIZE):
                return None
        return None
