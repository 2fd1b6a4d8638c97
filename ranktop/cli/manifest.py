"""What a manifest wants to know of a running server: versions under its /proc root, GPUs, network devices, image."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import msgspec

from collectors.cgroup_paths import container_id, parse_membership
from collectors.nvml import NvmlCollector
from collectors.procfs import read_file
from ranktop.cli.errors import UsageProblem
from ranktop.finding import Finding
from ranktop.plan import LaunchRequest, Plan
from ranktop.plan.manifest import compare_manifest, manifest_from_yaml, manifest_of
from ranktop.sample import Gpus, NoData, SourceError

_MAX_MANIFEST_BYTES = 1 << 20
_MAX_ENTRIES = 20_000
"""Of one folder of packages; a real one has some hundreds."""
_MAX_FOLDERS = 32

_DIST_INFO = re.compile(r"^(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)\.dist-info$")
_PACKAGES = {"sglang": "sglang", "torch": "torch", "mooncake_transfer_engine": "mooncake"}
_CUDA_RUNTIME = re.compile(r"^nvidia_cuda_runtime(_cu\d+)?$")


def runtime_of(pid: int, proc_root: str = "/proc", sys_root: str = "/sys") -> dict[str, str]:
    """What can be seen of the server with main process `pid`, by the manifest's keys; what cannot is absent.

    Beside the runtime keys: `sglang` (version) and `sglang_commit`, where the installation says.
    """
    found = _packages(f"{proc_root}/{pid}/root", _prefixes(pid, proc_root))
    found |= _gpus(sys_root)
    devices = sorted(_listed(f"{sys_root}/class/infiniband"))
    if devices:
        found["network_devices"] = ",".join(devices)
    image = _container(pid, proc_root)
    return found | ({"container_id": image} if image else {})


def manifest_drift(
    path: str,
    request: LaunchRequest,
    plan: Plan,
    *,
    pid: int | None,
    server: str | None = None,
    proc_root: str = "/proc",
    sys_root: str = "/sys",
) -> tuple[Finding, ...]:
    """LAUNCH-DRIFT of a running server against the manifest in `path`.

    `request` and `plan` are the server's own, `pid` its main process. Raises UsageProblem for what is no manifest.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_MANIFEST_BYTES + 1).decode("utf-8", "replace")
        if len(text) > _MAX_MANIFEST_BYTES:
            raise ValueError(f"more than {_MAX_MANIFEST_BYTES} bytes")
        wanted = manifest_from_yaml(text)
    except OSError as error:
        raise UsageProblem(f"--manifest {path}: {error.strerror} (write one with ranktop plan --manifest)") from None
    except ValueError as error:
        raise UsageProblem(f"--manifest {path}: {error} (write one with ranktop plan --manifest)") from None
    seen = runtime_of(pid, proc_root, sys_root) if pid is not None else {}
    return compare_manifest(wanted, manifest_of(request, plan, seen), server)


def _prefixes(pid: int, proc_root: str) -> list[str]:
    """Installation prefixes of the process's Python, most likely first, as paths inside its root."""
    try:
        executable = os.readlink(f"{proc_root}/{pid}/exe")
    except OSError:
        executable = ""
    prefixes = [os.path.dirname(os.path.dirname(executable))] if executable else []
    try:
        first = (
            read_file(f"{proc_root}/{pid}/cmdline", 1 << 16).split(b"\0")[0].split(b" ")[0].decode("utf-8", "replace")
        )
    except OSError:
        first = ""
    # A virtual environment's python is a link: exe shows the interpreter, the command line the environment.
    if first.startswith("/"):
        prefixes.insert(0, os.path.dirname(os.path.dirname(first)))
    return list(dict.fromkeys([*prefixes, "/usr/local", "/usr", "/opt/conda", "/opt/venv"]))


def _package_folders(root: str, prefixes: list[str]) -> Iterator[str]:
    for prefix in prefixes:
        for library in sorted(_listed(f"{root}{prefix}/lib")):
            if library.startswith("python"):
                yield f"{root}{prefix}/lib/{library}/site-packages"
                yield f"{root}{prefix}/lib/{library}/dist-packages"


def _packages(root: str, prefixes: list[str]) -> dict[str, str]:
    """Versions by manifest key from the names of dist-info folders. The first folder that has SGLang decides."""
    for number, folder in enumerate(_package_folders(root, prefixes)):
        if number >= _MAX_FOLDERS:
            break
        versions = {
            match["name"].lower(): (match["version"], name)
            for name in _listed(folder)
            if (match := _DIST_INFO.match(name)) is not None
        }
        if "sglang" not in versions:
            continue
        found = {key: versions[name][0] for name, key in _PACKAGES.items() if name in versions}
        cuda = next((version for name, (version, _) in versions.items() if _CUDA_RUNTIME.match(name)), None)
        if cuda is not None:
            found["cuda"] = cuda
        commit = _commit(f"{folder}/{versions['sglang'][1]}/direct_url.json")
        return found | ({"sglang_commit": commit} if commit else {})
    return {}


def _commit(path: str) -> str | None:
    """The commit that pip wrote down when SGLang was installed from a repository (PEP 610)."""
    try:
        document = msgspec.json.decode(read_file(path, 1 << 16))
        commit = document["vcs_info"]["commit_id"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return None
    return commit if isinstance(commit, str) else None


def _gpus(sys_root: str) -> dict[str, str]:
    try:
        gpus: Gpus = NvmlCollector(sys_root=sys_root).read(None, 0.0)
    except (NoData, SourceError):
        return {}
    names = sorted({gpu.name for gpu in gpus.gpus if gpu.name})
    found = {"gpu_count": str(len(gpus.gpus))} if gpus.gpus else {}
    if names:
        found["gpu_sku"] = ",".join(names)
    return found | ({"driver": gpus.driver_version} if gpus.driver_version else {})


def _container(pid: int, proc_root: str) -> str | None:
    try:
        member = parse_membership(read_file(f"{proc_root}/{pid}/cgroup", 1 << 16))
    except OSError:
        return None
    return container_id(member.path) if member is not None else None


def _listed(folder: str) -> list[str]:
    """Names in a folder, none when it is not there or not ours to read; a huge one is cut."""
    names: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) >= _MAX_ENTRIES:
                    break
    except OSError:
        return names
    return names
