"""All GPUs of the node through NVML, each read by a thread of its own so that one that hangs costs its own row."""

from __future__ import annotations

import os
import time
from typing import Any

import msgspec

from collectors.nvml_device import DeviceReader
from collectors.nvml_session import UNINITIALIZED, NvmlSession, word_of
from collectors.nvml_worker import Worker
from ranktop.sample import Gpu, Gpus, Processes, SourceError

DEADLINE_SECONDS = 0.8


class NvmlCollector:
    """GPUs by NVML's index. A GPU that does not answer within the deadline has the state `hanging`."""

    name = "nvml"
    part = "gpus"
    server = None

    def __init__(
        self,
        session: NvmlSession | None = None,
        *,
        sys_root: str | os.PathLike[str] = "/sys",
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self.session = session if session is not None else NvmlSession()
        # Opening a session takes a tenth of a second and more.
        self.period_seconds = 1.0 if self.session.hold else 10.0
        self._sys_root = os.fspath(sys_root)
        self._deadline_seconds = deadline_seconds
        self._opened = 0
        self._driver_version: str | None = None
        self._readers: list[tuple[DeviceReader, Worker[Gpu]]] = []
        self.session.before_close(self._let_go)

    def read(self, processes: Processes | None, now: float) -> Gpus:
        nvml = self.session.open(now)
        try:
            if self._opened != self.session.opened:
                self._enumerate(nvml)
            for _, worker in self._readers:
                worker.ask()
            deadline = time.monotonic() + self._deadline_seconds
            gpus = tuple(self._row(reader, worker, deadline) for reader, worker in self._readers)
        except nvml.NVMLError as error:
            if error.value == UNINITIALIZED:
                self.session.reopen()
            raise SourceError(f"NVML: {error} (it is asked again)", word_of(error.value)) from error
        self.session.after_reading()
        return Gpus(driver_version=self._driver_version, gpus=gpus)

    def _enumerate(self, nvml: Any) -> None:
        """Handles and indices of an earlier session mean nothing in this one."""
        for _, worker in self._readers:
            worker.end()
        version = nvml.nvmlSystemGetDriverVersion()
        self._driver_version = version.decode() if isinstance(version, bytes) else version
        readers = [DeviceReader(nvml, index, self._sys_root) for index in range(nvml.nvmlDeviceGetCount())]
        self._readers = [(reader, Worker(f"ranktop gpu {reader.index}", reader.read)) for reader in readers]
        self._opened = self.session.opened

    def _row(self, reader: DeviceReader, worker: Worker[Gpu], deadline: float) -> Gpu:
        # One that was overdue before is not waited for again: the other rows must not come late for it.
        is_overdue = (worker.busy_seconds or 0.0) > self._deadline_seconds
        gpu = worker.answer(0.0 if is_overdue else deadline - time.monotonic())
        if gpu is not None:
            return gpu
        seconds = worker.busy_seconds or 0.0
        return msgspec.structs.replace(
            reader.identity,
            state="hanging",
            detail=f"GPU {reader.index}: NVML has not answered for {seconds:.0f} s (see dmesg; the other rows go on)",
        )

    def _let_go(self) -> str | None:
        """End the threads; say which GPU still holds one of them in a call."""
        for reader, worker in self._readers:
            if worker.busy_seconds is not None:
                return f"a call on GPU {reader.index} has not come back for {worker.busy_seconds or 0:.0f} s"
        for _, worker in self._readers:
            worker.end()
        self._readers = []
        return None
