"""GPUs as nvidia-smi prints them: `nvidia-smi -q -x` (nvsmi_device_v12 and v13) and `nvidia-smi topo -m`."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import Any

import msgspec

from collectors.nvml_device import pci_address
from ranktop.sample import Gpu, GpuProcess, Gpus

_AMOUNT = re.compile(r"(-?\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|C|W|%)?\Z")
_FACTORS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MAX_GPUS = 1024


def parse_smi_xml(data: bytes) -> Gpus | None:
    """GPUs in the order of the document, which is NVML's. None for what is not such a document."""
    # No document of nvidia-smi declares entities, and those of a stranger can unfold without end.
    if b"<!ENTITY" in data:
        return None
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError:
        return None
    if root.tag != "nvidia_smi_log":
        return None
    gpus = tuple(_gpu(index, node) for index, node in enumerate(root.findall("gpu")[:_MAX_GPUS]))
    return Gpus(driver_version=_text(root, "driver_version"), gpus=gpus)


def _gpu(index: int, node: ElementTree.Element) -> Gpu:
    bus = _text(node, "pci/pci_bus_id") or node.get("id")
    lost = _is_lost(node)
    ecc = [_integer(node, f"ecc_errors/volatile/{name}") for name in _UNCORRECTED]
    told = [count for count in ecc if count is not None]
    return Gpu(
        index=index,
        uuid=_text(node, "uuid"),
        name=_text(node, "product_name"),
        pci_bus_id=pci_address(bus) if bus else None,
        state="lost" if lost else "ok",
        detail="nvidia-smi says that this GPU is lost" if lost else "",
        total_bytes=_bytes(node, "fb_memory_usage/total"),
        reserved_bytes=_bytes(node, "fb_memory_usage/reserved"),
        used_bytes=_bytes(node, "fb_memory_usage/used"),
        free_bytes=_bytes(node, "fb_memory_usage/free"),
        bar1_total_bytes=_bytes(node, "bar1_memory_usage/total"),
        bar1_used_bytes=_bytes(node, "bar1_memory_usage/used"),
        utilization_percent=_number(node, "utilization/gpu_util"),
        memory_utilization_percent=_number(node, "utilization/memory_util"),
        temperature_celsius=_number(node, "temperature/gpu_temp"),
        power_watts=_number(node, "gpu_power_readings/instant_power_draw")
        or _number(node, "power_readings/power_draw"),
        ecc_uncorrected_count=sum(told) if told else None,
        remap_pending=_yes(node, "remapped_rows/remapped_row_pending"),
        remap_failed=_yes(node, "remapped_rows/remapped_row_failure"),
        mig={"Enabled": True, "Disabled": False}.get(_text(node, "mig_mode/current_mig") or ""),
        processes=_processes(node),
    )


_UNCORRECTED = (
    "sram_uncorrectable",
    "sram_uncorrectable_parity",
    "sram_uncorrectable_secded",
    "dram_uncorrectable",
)


def _is_lost(node: ElementTree.Element) -> bool:
    """A GPU that fell off the bus answers every question with `GPU is lost`."""
    return any(
        "is lost" in (leaf.text or "") for leaf in (node.find("product_name"), node.find("uuid")) if leaf is not None
    ) or (_text(node, "fb_memory_usage/total") == "GPU is lost")


def _processes(node: ElementTree.Element) -> tuple[GpuProcess, ...] | None:
    told = node.find("processes")
    if told is None:
        return None
    found: list[GpuProcess] = []
    for process in told.findall("process_info"):
        pid = _integer(process, "pid")
        if pid is not None and _text(process, "type") != "G":
            found.append(GpuProcess(pid, _bytes(process, "used_memory")))
    return tuple(found)


def _text(node: ElementTree.Element, path: str) -> str | None:
    text = (node.findtext(path) or "").strip()
    return None if text in ("", "N/A", "[N/A]", "Unknown Error", "None") else text[:200]


def _number(node: ElementTree.Element, path: str) -> float | None:
    match = _AMOUNT.match(_text(node, path) or "")
    return float(match[1]) if match is not None else None


def _integer(node: ElementTree.Element, path: str) -> int | None:
    text = _text(node, path)
    return int(text) if text is not None and text.isdigit() and len(text) < 19 else None


def _bytes(node: ElementTree.Element, path: str) -> int | None:
    match = _AMOUNT.match(_text(node, path) or "")
    return int(float(match[1]) * _FACTORS.get(match[2] or "", 1)) if match is not None else None


def _yes(node: ElementTree.Element, path: str) -> bool | None:
    return {"Yes": True, "No": False}.get(_text(node, path) or "")


_CSV_FIELDS = {
    "index": "index",
    "name": "name",
    "uuid": "uuid",
    "pci.bus_id": "pci_bus_id",
    "memory.total [MiB]": "total_bytes",
    "memory.used [MiB]": "used_bytes",
    "memory.free [MiB]": "free_bytes",
}


def query_gpus(lines: Sequence[str]) -> Gpus | None:
    """GPUs of `nvidia-smi --query-gpu=index,... --format=csv`. `[N/A]` is None: a GPU in MIG mode tells no memory."""
    found: list[Gpu] = []
    columns: list[str] = []
    for line in lines:
        if not columns and not line.startswith("index,"):
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] == "index" and len(cells) > 1:
            columns = cells
        elif columns and len(cells) == len(columns) and cells[0].isdigit() and len(found) < _MAX_GPUS:
            found.append(_queried(dict(zip(columns, cells, strict=True))))
        else:
            columns = []
    return Gpus(gpus=tuple(found)) if found else None


def _queried(row: dict[str, str]) -> Gpu:
    fields: dict[str, Any] = {}
    for column, text in row.items():
        field = _CSV_FIELDS.get(column)
        if field is None or text in ("[N/A]", "N/A", "[Not Supported]"):
            continue
        match = _AMOUNT.match(text)
        if field == "index":
            fields[field] = int(text)
        elif field == "pci_bus_id":
            fields[field] = pci_address(text)
        elif not field.endswith("_bytes"):
            fields[field] = text[:200]
        elif match is not None:
            fields[field] = int(float(match[1]) * (1 << 20))
    return Gpu(**fields)


_TOPO_ROW = re.compile(r"\s*(?:\x1b\[\d*m)?GPU(\d+)(?:\x1b\[\d*m)?\s+(.*)")


def topo_nodes(lines: Sequence[str]) -> dict[int, int | None]:
    """GPU index to its NUMA node in `nvidia-smi topo -m`. `N/A` and a list of several nodes are None, never node 0."""
    found: dict[int, int | None] = {}
    column: int | None = None
    for line in lines:
        if "CPU Affinity" in line and "NUMA Affinity" in line:
            # Cells hold no spaces, headers do.
            headers = re.split(r"\t+|\s{2,}", line.strip())
            column = headers.index("NUMA Affinity") if "NUMA Affinity" in headers else None
            continue
        match = _TOPO_ROW.match(line) if column is not None else None
        if column is None or match is None:
            continue
        cells = match[2].split()
        text = cells[column] if column < len(cells) else ""
        found[int(match[1])] = int(text) if text.isdigit() else None
    return found


def with_nodes(gpus: Gpus | None, nodes: dict[int, int | None]) -> Gpus | None:
    """The GPUs with the nodes that `topo -m` says; without other GPUs, those that it names."""
    if not nodes:
        return gpus
    if gpus is None:
        return Gpus(gpus=tuple(Gpu(index, numa_node=node) for index, node in sorted(nodes.items())))
    return msgspec.structs.replace(
        gpus,
        gpus=tuple(
            msgspec.structs.replace(gpu, numa_node=nodes[gpu.index])
            if gpu.numa_node is None and gpu.index in nodes
            else gpu
            for gpu in gpus.gpus
        ),
    )
