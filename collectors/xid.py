"""XID errors as NVML tells them: a thread waits for events, from its start on. Older ones are in the kernel's log."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from collectors.nvml_device import pci_address
from collectors.nvml_session import RETRY_SECONDS, NvmlSession, word_of
from ranktop.sample import Event, NoData, Processes, SourceError

_XID_CRITICAL_ERROR = 0x8
_TIMEOUT = 10
_WAIT_MILLISECONDS = 500


class XidCollector:
    """Events of kind `xid` with `xid` and `pci_bus_id`."""

    name = "xid"
    part = "events"
    server = None
    period_seconds = 1.0

    def __init__(self, session: NvmlSession, *, wall: Callable[[], float] = time.time) -> None:
        self._session = session
        self._wall = wall
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._listener: _Listener | None = None
        self._listened_at = 0.0
        session.before_close(self._let_go)

    def read(self, processes: Processes | None, now: float) -> tuple[Event, ...]:
        """What came since the last look."""
        if not self._session.hold:
            raise NoData("no NVML session is held, XIDs come from the kernel's log only", "released")
        nvml = self._session.open(now)
        # A GPU that is lost ends the wait for all; a new one leaves it out.
        failed = self._listener is not None and isinstance(self._listener.refusal, SourceError)
        retries = failed and not 0 <= now - self._listened_at < RETRY_SECONDS
        if self._listener is None or self._listener.opened != self._session.opened or retries:
            self._listener = _Listener(nvml, self._session.opened, self._events, self._wall)
            self._listened_at = now
        if self._listener.refusal is not None:
            raise self._listener.refusal.with_traceback(None)
        found: list[Event] = []
        while not self._events.empty():
            found.append(self._events.get())
        return tuple(found)

    def _let_go(self) -> str | None:
        if self._listener is None:
            return None
        self._listener.stop()
        if self._listener.is_alive:
            return "the wait for XID events has not ended yet"
        self._listener = None
        return None


class _Listener:
    """One event set over all GPUs, waited for in half seconds so that it can be stopped."""

    def __init__(self, nvml: Any, opened: int, events: queue.SimpleQueue[Event], wall: Callable[[], float]) -> None:
        self.opened = opened
        self.refusal: NoData | SourceError | None = None
        self._nvml = nvml
        self._events = events
        self._wall = wall
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ranktop xid", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask the thread to end, and give it one wait's time to do so."""
        self._stop.set()
        self._thread.join(2 * _WAIT_MILLISECONDS / 1000)

    def _run(self) -> None:
        try:
            self._listen()
        except self._nvml.NVMLError as error:
            self.refusal = SourceError(f"NVML events: {error} (XIDs still come from the kernel's log)", "events")

    def _listen(self) -> None:
        nvml = self._nvml
        events = nvml.nvmlEventSetCreate()
        try:
            if not self._registered(events):
                self.refusal = NoData("no GPU here tells XID events through NVML", "not_supported")
                return
            while not self._stop.is_set():
                try:
                    data = nvml.nvmlEventSetWait(events, _WAIT_MILLISECONDS)
                except nvml.NVMLError as error:
                    if error.value != _TIMEOUT:
                        raise
                    continue
                if data.eventType & _XID_CRITICAL_ERROR:
                    self._events.put(self._event(data))
        finally:
            nvml.nvmlEventSetFree(events)

    def _registered(self, events: Any) -> int:
        nvml = self._nvml
        count = 0
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                nvml.nvmlDeviceRegisterEvents(handle, _XID_CRITICAL_ERROR, events)
                count += 1
            except nvml.NVMLError:
                # A lost GPU, or one without events: the others are listened to.
                continue
        return count

    def _event(self, data: Any) -> Event:
        xid = int(data.eventData)
        try:
            address = pci_address(self._nvml.nvmlDeviceGetPciInfo(data.device).busId)
        except self._nvml.NVMLError as error:
            address = word_of(error.value)
        return Event(
            at_unix_seconds=self._wall(),
            kind="xid",
            text=f"XID {xid} on {address}",
            fields={"xid": xid, "pci_bus_id": address},
            source="measured",
        )
