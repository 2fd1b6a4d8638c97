"""GPUs that failed, and what NVML no longer shows: GPU-LOST, GPU-ECC, NVML-BROKEN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktop.finding import Finding
from ranktop.reconcile.rules.rule import Context
from ranktop.sample import Gpu

_LOST = frozenset({"lost", "reset_required"})
_BLIND = "HBM, GPU use, PCIe and NVLink rates, ECC"
_RECOVERY = {1: "GPU reset", 2: "node reboot", 3: "drain peer-to-peer traffic", 4: "drain and reset"}


def gpu_lost(context: Context) -> Iterator[Finding]:
    """A GPU fell off the bus or waits for a reset."""
    for gpu, rank in _ranked(context, [gpu for gpu in _gpus(context) if gpu.state in _LOST]):
        yield Finding(
            "GPU-LOST",
            "critical",
            f"GPU {gpu.index} ({gpu.pci_bus_id or 'bus unknown'}) is {gpu.state.replace('_', ' ')}"
            + (f": {gpu.detail}" if gpu.detail else ""),
            scope="rank" if rank else "node",
            server=rank[0] if rank else None,
            rank=rank[1] if rank else None,
            evidence={"gpu": gpu.index, "state": gpu.state, "recovery_action": gpu.recovery_action},
            sources=dict.fromkeys(("gpu", "state", "recovery_action"), _source(context)),
            advice=f"drain this node: the group cannot serve without this GPU. {_recovery(gpu)}",
        )


def gpu_ecc(context: Context) -> Iterator[Finding]:
    """Rows of HBM wait to be remapped, or could not be."""
    for gpu, rank in _ranked(context, [gpu for gpu in _gpus(context) if gpu.remap_failed or gpu.remap_pending]):
        yield Finding(
            "GPU-ECC",
            "critical" if gpu.remap_failed else "warn",
            f"GPU {gpu.index}: "
            + ("a row of HBM could not be remapped" if gpu.remap_failed else "rows of HBM wait to be remapped"),
            scope="rank" if rank else "node",
            server=rank[0] if rank else None,
            rank=rank[1] if rank else None,
            evidence={
                "gpu": gpu.index,
                "remap_pending": gpu.remap_pending,
                "remap_failed": gpu.remap_failed,
                "ecc_uncorrected_count": gpu.ecc_uncorrected_count,
            },
            sources=dict.fromkeys(("gpu", "remap_pending", "remap_failed", "ecc_uncorrected_count"), _source(context)),
            advice="take the node out of service and have the GPU replaced"
            if gpu.remap_failed
            else "the remap takes effect at the next reboot: plan one, drained and in its turn",
        )


def nvml_broken(context: Context) -> Iterator[Finding]:
    """NVML should answer and does not, as a whole or for some GPUs; what is blind meanwhile."""
    state = next((state for state in context.sample.sources if state.name == "nvml"), None)
    since = context.since(context.thresholds.event_seconds)
    mismatch = next(iter(context.incidents.of("driver_mismatch", since_unix_seconds=since)), None)
    if state is not None and state.state == "error":
        yield Finding(
            "NVML-BROKEN",
            "warn",
            f"{state.detail}. Not seen now: {_BLIND}",
            evidence={"answer": state.code},
            sources={"answer": "measured"},
            advice="host memory, NUMA and metrics are still seen. "
            + (
                "Running ranks keep serving; load the matching driver at the next drain, then start ranktop again"
                if state.code == "version_mismatch"
                else "Read the kernel log for XIDs; `ranktop doctor` says which permission is missing"
            ),
        )
        return
    if mismatch is not None and context.sample.gpus is None:
        library, driver = mismatch.fields.get("library_version"), mismatch.fields.get("driver_version")
        yield Finding(
            "NVML-BROKEN",
            "warn",
            f"NVIDIA library {library} does not fit the loaded driver {driver}. Not seen now: {_BLIND}",
            evidence={"library_version": library, "driver_version": driver},
            sources={"library_version": "logged", "driver_version": "logged"},
            advice="running ranks keep serving; load the matching driver at the next drain",
        )
        return
    silent = [gpu for gpu in _gpus(context) if gpu.state not in _LOST and gpu.state != "ok"]
    if silent:
        names = ", ".join(f"GPU {gpu.index} {gpu.state.replace('_', ' ')}" for gpu in silent[:4])
        yield Finding(
            "NVML-BROKEN",
            "warn",
            f"{len(silent)} of {len(_gpus(context))} GPUs do not answer NVML: {names}. Not seen of them: {_BLIND}",
            evidence={"gpus": [gpu.index for gpu in silent], "states": [gpu.state for gpu in silent]},
            sources={"gpus": _source(context), "states": _source(context)},
            advice=silent[0].detail or "read the kernel log for XIDs of these GPUs",
        )


def _ranked(context: Context, gpus: Sequence[Gpu]) -> Iterator[tuple[Gpu, tuple[str, str] | None]]:
    """Each of these GPUs once for each rank on it; with None where none is."""
    by_gpu: dict[int | None, list[tuple[str, str]]] = {}
    for rank in context.ranks if gpus else ():
        if rank.pid is not None:
            by_gpu.setdefault(rank.gpu, []).append((rank.server, rank.rank))
    for gpu in gpus:
        for rank in by_gpu.get(gpu.index) or (None,):
            yield gpu, rank


def _gpus(context: Context) -> tuple[Gpu, ...]:
    return context.sample.gpus.gpus if context.sample.gpus else ()


def _source(context: Context) -> str:
    return context.sample.gpus.source if context.sample.gpus else "measured"


def _recovery(gpu: Gpu) -> str:
    action = _RECOVERY.get(gpu.recovery_action or 0)
    if action is None:
        return "Read its XIDs in the kernel log before anything else"
    return f"NVML asks for: {action}; on an NVSwitch machine reboot the node, one GPU is not reset alone"
