"""One GPU through NVML. Every call may fail alone: what is not supported is missing, what is lost ends the row."""

from __future__ import annotations

from typing import Any

import msgspec

from collectors import nvml_session as codes
from collectors.nvml_calls import FATAL, NOT_AVAILABLE, Calls
from collectors.nvml_session import word_of
from ranktop.sample import Gpu, MigInstance

_ALL_LINKS = 0xFFFFFFFF
_UNCORRECTED, _VOLATILE = 1, 0
_AFFINITY_WORDS = 64

# nvml.h of the 590 driver. NVLink counts are in KiB, over all links by scope.
_FIELDS: dict[str, tuple[int, int]] = {
    "nvlink_tx": (138, _ALL_LINKS),
    "nvlink_rx": (139, _ALL_LINKS),
    "remap_pending": (144, 0),
    "remap_failed": (145, 0),
    "pcie_tx": (197, 0),
    "pcie_rx": (198, 0),
    "recovery_action": (230, 0),
}
_VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_UNSIGNED_INT = 1
_HIDDEN_ABOVE_BYTES = 2 << 30


class DeviceReader:
    """Reads one GPU by its index. All calls of one reader come from one thread, as any of them may hang."""

    def __init__(self, nvml: Any, index: int, sys_root: str) -> None:
        self.index = index
        self._nvml = nvml
        self._sys_root = sys_root
        self._handle: Any = None
        self._identity = Gpu(index=index)
        self._calls = Calls(nvml)
        self._mig_calls = Calls(nvml)

    @property
    def identity(self) -> Gpu:
        """Name, UUID, address and node, without measurements."""
        return self._identity

    def read(self) -> Gpu:
        """What the GPU says now. Lost or in need of a reset: a row with that state. Raises NVMLError when NVML itself
        is uninitialised."""
        self._calls.failed.clear()
        self._mig_calls.failed.clear()
        try:
            return self._measured()
        except self._nvml.NVMLError as error:
            if error.value == codes.UNINITIALIZED:
                raise
            return _with(self._identity, state=word_of(error.value), detail=f"GPU {self.index}: {error}")

    def _measured(self) -> Gpu:
        nvml = self._nvml
        if self._handle is None:
            self._handle = nvml.nvmlDeviceGetHandleByIndex(self.index)
            self._identity = self._identify(self._handle)
        handle, calls, ask = self._handle, self._calls, self._calls.ask
        memory = calls.memory(handle)
        utilization = ask("utilization", nvml.nvmlDeviceGetUtilizationRates, handle)
        bar1 = ask("BAR1", nvml.nvmlDeviceGetBAR1MemoryInfo, handle)
        power_milliwatts = ask("power", nvml.nvmlDeviceGetPowerUsage, handle)
        fields = self._fields(handle)
        mig_mode = ask("MIG", nvml.nvmlDeviceGetMigMode, handle)
        instances = self._mig_instances(handle) if mig_mode and mig_mode[0] else ()
        processes = calls.processes(handle)
        if instances:
            inside = tuple(process for instance in instances for process in instance.processes or ())
            processes = inside or processes
        if processes == () and (memory.used_bytes or 0) > _HIDDEN_ABOVE_BYTES:
            calls.failed["processes"] = "none visible though memory is in use (another pid namespace?)"
        remap_pending, remap_failed = fields.get("remap_pending"), fields.get("remap_failed")
        values: dict[str, Any] = dict(
            utilization_percent=float(utilization.gpu) if utilization else None,
            memory_utilization_percent=float(utilization.memory) if utilization else None,
            temperature_celsius=ask("temperature", nvml.nvmlDeviceGetTemperature, handle, 0),
            power_watts=power_milliwatts / 1000 if power_milliwatts is not None else None,
            pcie_tx_bytes=fields.get("pcie_tx"),
            pcie_rx_bytes=fields.get("pcie_rx"),
            nvlink_tx_bytes=_kib(fields.get("nvlink_tx")),
            nvlink_rx_bytes=_kib(fields.get("nvlink_rx")),
            ecc_uncorrected_count=ask("ECC", nvml.nvmlDeviceGetTotalEccErrors, handle, _UNCORRECTED, _VOLATILE),
            remap_pending=bool(remap_pending) if remap_pending is not None else None,
            remap_failed=bool(remap_failed) if remap_failed is not None else None,
            recovery_action=fields.get("recovery_action"),
            clocks_event_reasons=ask("clocks", nvml.nvmlDeviceGetCurrentClocksEventReasons, handle),
            bar1_used_bytes=int(bar1.bar1Used) if bar1 else None,
            bar1_total_bytes=int(bar1.bar1Total) if bar1 else None,
            mig=bool(mig_mode[0]) if mig_mode else None,
            mig_instances=instances,
            processes=processes,
            **memory._asdict(),
        )
        return _with(self._identity, state=calls.failed.get("memory", "ok"), detail=calls.detail, **values)

    def _identify(self, handle: Any) -> Gpu:
        nvml, ask = self._nvml, self._calls.ask
        pci = ask("PCI address", nvml.nvmlDeviceGetPciInfo, handle)
        bus_id = pci_address(pci.busId) if pci else None
        return Gpu(
            index=self.index,
            uuid=_text(ask("UUID", nvml.nvmlDeviceGetUUID, handle)),
            name=_text(ask("name", nvml.nvmlDeviceGetName, handle)),
            pci_bus_id=bus_id,
            numa_node=self._numa_node(handle, bus_id),
        )

    def _numa_node(self, handle: Any, bus_id: str | None) -> int | None:
        """The nearest CPU node: sysfs, else NVML's memory affinity when it names one node only."""
        try:
            with open(f"{self._sys_root}/bus/pci/devices/{bus_id}/numa_node", encoding="ascii") as file:
                node = int(file.read(16))
            return node if node >= 0 else None
        except (OSError, ValueError):
            words = self._calls.ask("NUMA node", self._nvml.nvmlDeviceGetMemoryAffinity, handle, _AFFINITY_WORDS, 0)
        mask = sum(int(word) << (64 * position) for position, word in enumerate(words or ()))
        return mask.bit_length() - 1 if mask.bit_count() == 1 else None

    def _mig_instances(self, handle: Any) -> tuple[MigInstance, ...]:
        nvml, calls, ask = self._nvml, self._mig_calls, self._mig_calls.ask
        found: list[MigInstance] = []
        for index in range(ask("MIG count", nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            try:
                instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except nvml.NVMLError as error:
                if error.value in FATAL:
                    raise
                continue
            memory = calls.memory(instance)
            found.append(
                MigInstance(
                    index=index,
                    uuid=_text(ask("MIG UUID", nvml.nvmlDeviceGetUUID, instance)),
                    gpu_instance_id=ask("GPU instance", nvml.nvmlDeviceGetGpuInstanceId, instance),
                    compute_instance_id=ask("compute instance", nvml.nvmlDeviceGetComputeInstanceId, instance),
                    total_bytes=memory.total_bytes,
                    used_bytes=memory.used_bytes,
                    free_bytes=memory.free_bytes,
                    processes=calls.processes(instance),
                )
            )
        return tuple(found)

    def _fields(self, handle: Any) -> dict[str, int]:
        calls = self._calls
        wanted = {name: field for name, field in _FIELDS.items() if name not in calls.unsupported}
        values = calls.ask("fields", self._nvml.nvmlDeviceGetFieldValues, handle, list(wanted.values()))
        found: dict[str, int] = {}
        for name, value in zip(wanted, values or (), strict=False):
            if value.nvmlReturn in (codes.NOT_SUPPORTED, codes.FUNCTION_NOT_FOUND, 2):
                calls.unsupported[name] = word_of(codes.NOT_SUPPORTED)
            elif value.nvmlReturn:
                calls.failed[name] = word_of(value.nvmlReturn)
            elif name.startswith("pcie") and value.valueType == _UNSIGNED_INT:
                # A 32 bit count of bytes wraps several times a second on a busy link: no rate can be made of it.
                calls.unsupported[name] = "the driver counts in 32 bits, which wrap faster than they are read"
            elif value.valueType < len(_VALUE_MEMBERS):
                number = int(getattr(value.value, _VALUE_MEMBERS[value.valueType]))
                if 0 <= number < NOT_AVAILABLE:
                    found[name] = number
        return found


def pci_address(bus_id: bytes | str) -> str:
    """NVML's `00000000:18:00.0` as sysfs spells it: `0000:18:00.0`."""
    text = bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else bus_id
    domain, colon, rest = text.lower().partition(":")
    return f"{domain[-4:]}{colon}{rest}"


def _with(gpu: Gpu, **values: Any) -> Gpu:
    return msgspec.structs.replace(gpu, **values)


def _kib(number: int | None) -> int | None:
    return number * 1024 if number is not None else None


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
