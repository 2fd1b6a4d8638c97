"""GPUs as NVML reports them (nvml.h of the driver). HBM is in bytes; screens show GiB."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from ranktop.sample.fields import counter, gauge, label


class GpuProcess(Struct, frozen=True, array_like=True, gc=False):
    """A compute process on a GPU. The pid may belong to another pid namespace (old drivers report host pids)."""

    pid: Annotated[int, label("pid", 8, "pid as NVML says it")]
    used_bytes: Annotated[int | None, gauge("HBM", "bytes", 9, "HBM of the process; None where NVML does not tell")] = (
        None
    )
    gpu_instance_id: Annotated[int | None, label("gi", 3, "MIG GPU instance the process runs in")] = None


class MigInstance(Struct, frozen=True, array_like=True, gc=False):
    """One MIG device of a GPU."""

    index: Annotated[int, label("mig", 3, "index among the GPU's MIG devices")]
    uuid: Annotated[str | None, label("uuid", 40, "MIG UUID, as CUDA_VISIBLE_DEVICES may name it")] = None
    gpu_instance_id: Annotated[int | None, label("gi", 3, "GPU instance id")] = None
    compute_instance_id: Annotated[int | None, label("ci", 3, "compute instance id")] = None
    total_bytes: Annotated[int | None, gauge("total", "bytes", 9, "memory of the instance")] = None
    used_bytes: Annotated[int | None, gauge("used", "bytes", 9, "memory in use")] = None
    free_bytes: Annotated[int | None, gauge("free", "bytes", 9, "memory free")] = None
    processes: tuple[GpuProcess, ...] | None = None


class Gpu(Struct, frozen=True, array_like=True, gc=False):
    """One GPU. `state` is `ok` or NVML's error in words; then the fields that failed are None."""

    index: Annotated[int, label("gpu", 3, "NVML's index")]
    uuid: Annotated[str | None, label("uuid", 40, "GPU UUID")] = None
    name: Annotated[str | None, label("name", 24, "product name")] = None
    pci_bus_id: Annotated[str | None, label("bus", 12, "PCI address, as in /sys/bus/pci")] = None
    numa_node: Annotated[int | None, label("node", 4, "nearest CPU node; None when firmware does not say")] = None
    state: Annotated[str, label("state", 10, "ok, lost, no_permission, ...")] = "ok"
    detail: str = ""
    total_bytes: Annotated[int | None, gauge("total", "bytes", 9, "memory v2: reserved + used + free")] = None
    used_bytes: Annotated[int | None, gauge("used", "bytes", 9, "memory v2: used, without reserved")] = None
    free_bytes: Annotated[int | None, gauge("free", "bytes", 9, "memory v2: free")] = None
    reserved_bytes: Annotated[int | None, gauge("rsvd", "bytes", 9, "memory v2: reserved by the driver")] = None
    utilization_percent: Annotated[float | None, gauge("util", "percent", 5, "SM utilisation")] = None
    memory_utilization_percent: Annotated[float | None, gauge("mem", "percent", 5, "memory interface busy")] = None
    temperature_celsius: Annotated[float | None, gauge("temp", "celsius", 5, "GPU temperature")] = None
    power_watts: Annotated[float | None, gauge("power", "watts", 6, "board power")] = None
    pcie_tx_bytes: Annotated[int | None, counter("pcie tx", "bytes", 12, "field 197, cumulative")] = None
    pcie_rx_bytes: Annotated[int | None, counter("pcie rx", "bytes", 12, "field 198, cumulative")] = None
    nvlink_tx_bytes: Annotated[int | None, counter("nvl tx", "bytes", 12, "field 138, cumulative")] = None
    nvlink_rx_bytes: Annotated[int | None, counter("nvl rx", "bytes", 12, "field 139, cumulative")] = None
    ecc_uncorrected_count: Annotated[int | None, counter("ecc", "count", 5, "uncorrected, volatile")] = None
    remap_pending: Annotated[bool | None, label("remap", 5, "row remap pending: reset needed")] = None
    remap_failed: Annotated[bool | None, label("remapfail", 5, "row remap failed")] = None
    clocks_event_reasons: Annotated[int | None, gauge("clocks", "bitmask", 8, "why clocks are held down")] = None
    mig: Annotated[bool | None, label("mig", 3, "MIG mode on")] = None
    processes: tuple[GpuProcess, ...] | None = None
    """None: not told. Empty: told, and there are none (or all are hidden in another namespace)."""
    recovery_action: Annotated[
        int | None, label("recover", 7, "field 230: 0 none, 1 reset, 2 reboot, 3 drain, ...")
    ] = None
    bar1_used_bytes: Annotated[int | None, gauge("bar1", "bytes", 9, "BAR1 in use: RDMA and peer registrations")] = None
    bar1_total_bytes: Annotated[int | None, gauge("bar1 size", "bytes", 9, "size of BAR1")] = None
    mig_instances: tuple[MigInstance, ...] = ()


class Gpus(Struct, frozen=True, array_like=True):
    """All GPUs of the node."""

    source: str = "measured"
    driver_version: Annotated[str | None, label("driver", 12, "NVIDIA driver version")] = None
    gpus: tuple[Gpu, ...] = ()
