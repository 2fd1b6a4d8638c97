"""Texts that a node gives: logs, pages, tables, trees, in the formats of SGLang, procps, numactl and nvidia-smi."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ranktop.inspect.stream import write_stream
from ranktop.sample import Sample

STAMP = "2026-11-29 09:00:00"


def log(*messages: str, tag: str = "TP0", stamp: str = STAMP) -> str:
    """Lines of one rank's log."""
    prefix = f"[{stamp} {tag}]" if tag else f"[{stamp}]"
    return "".join(f"{prefix} {message}\n" for message in messages)


def pool_log(ranks: Iterable[str], *messages: str) -> str:
    """The same messages of every rank."""
    return "".join(log(message, tag=tag) for message in messages for tag in ranks)


def tags(count: int) -> list[str]:
    return [f"TP{tp}" for tp in range(count)]


def allocating(size_gb: float, what: str = "hierarchical KV cache") -> str:
    """The wording of host pools until 0.5.17."""
    return f"Allocating {size_gb:.2f} GB host memory for {what}."


def allocating_tokens(tokens: int, size_gb: float, packed: str = "") -> str:
    """The wording of host pools from 0.5.18 on."""
    return f"Allocating kv hierarchical KV host pool: {tokens} tokens, {size_gb:.2f} GB host memory{packed}."


def free_g(total: int, used: int, free: int, shared: int, cache: int, available: int) -> str:
    """`free -g`."""
    return (
        "$ free -g\n               total        used        free      shared  buff/cache   available\n"
        f"Mem: {total:>15} {used:>11} {free:>11} {shared:>11} {cache:>11} {available:>11}\n"
    )


def meminfo(total_kib: int, available_kib: int, **more_kib: int) -> str:
    """The beginning of `/proc/meminfo` and what else is wanted of it."""
    lines = {"MemTotal": total_kib, "MemFree": available_kib // 2, "MemAvailable": available_kib, **more_kib}
    return "".join(f"{name}: {value:>14} kB\n" for name, value in lines.items())


def page(series: Mapping[str, float | str]) -> str:
    """A metrics page of gauges and counters by full series name."""
    lines: list[str] = []
    for name, value in series.items():
        family = name.partition("{")[0]
        kind = "counter" if family.endswith("_total") else "gauge"
        line = f"# TYPE {family} {kind}"
        if line not in lines:
            lines.append(line)
        lines.append(f"{name} {value}")
    return "\n".join(lines) + "\n"


def smi_xml(gpus: Sequence[Mapping[str, object]], driver: str = "580.105.08") -> str:
    """`nvidia-smi -q -x` with the elements that are read. Keys: bus, total, used, free (MiB), pid, process (MiB)."""
    rows = "".join(_gpu_xml(gpu) for gpu in gpus)
    head = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n'
    return f"{head}<nvidia_smi_log>\n<driver_version>{driver}</driver_version>\n{rows}</nvidia_smi_log>\n"


def _gpu_xml(gpu: Mapping[str, object]) -> str:
    processes = ""
    if "pid" in gpu:
        processes = (
            f"<process_info><pid>{gpu['pid']}</pid><type>C</type><process_name>sglang::scheduler</process_name>"
            f"<used_memory>{gpu['process']} MiB</used_memory></process_info>"
        )
    return (
        f'<gpu id="00000000:{gpu["bus"]}:00.0"><product_name>NVIDIA H200</product_name>\n'
        f"<pci><pci_bus_id>00000000:{gpu['bus']}:00.0</pci_bus_id></pci>\n"
        f"<fb_memory_usage><total>{gpu['total']} MiB</total><reserved>600 MiB</reserved><used>{gpu['used']} MiB</used>"
        f"<free>{gpu['free']} MiB</free></fb_memory_usage>\n<processes>{processes}</processes></gpu>\n"
    )


def stream(samples: Sequence[Sample]) -> bytes:
    """The samples of a bundle."""
    return write_stream(samples)


def process_files(
    pid: int, title: Sequence[str], parent: int, *, state: str = "S", status: str = "", more: Mapping[str, str] = {}
) -> dict[str, str]:
    """One process of a copied `/proc`."""
    fields = [state, str(parent), str(pid), *["0"] * 10, "0", "0", "0", "0", "40", "0", "500", "0", "0"]
    return {
        f"proc/{pid}/stat": f"{pid} (python3) {' '.join(fields)}\n",
        f"proc/{pid}/comm": "python3\n",
        f"proc/{pid}/cmdline": "\0".join(title) + "\0",
        f"proc/{pid}/status": f"Name:\tpython3\nPid:\t{pid}\nPPid:\t{parent}\n{status}",
        **{f"proc/{pid}/{name}": text for name, text in more.items()},
    }
