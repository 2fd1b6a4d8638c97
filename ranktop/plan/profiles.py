"""What differs between SGLang releases, as data: one row a release. docs/profiles.md says how to add one."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ranktop.plan.plan import PlanError, SglangVersion

DEFAULT_VERSION = "0.5.18"
"""The version that both audits pin."""


class Profile(Struct, frozen=True):
    """One release. Every field is a difference that some release made; the computation is the same for all.

    The defaults are 0.5.16, the first release with LayerSplit.
    """

    version: str
    cell_charges_scaled_row: bool = False
    """False: the L1 sizing charges 576 bytes for a scaled FP8 row of 656."""
    device_index_elision: Literal["never", "alone", "always"] = "never"
    """Whether L1 leaves out the index buffers of layers that share one; "alone": only without HiCache and PD."""
    host_index_elision: bool = False
    """Whether the host indexer pool holds only the layers that compute their own index."""
    layersplit_cell_divides_index: bool = True
    """False: the LayerSplit cell divides the KV layers but charges every index layer."""
    mtp_packed: bool = False
    """NextN layers are tail layers of the target's host pool; False: a pool of their own on top of the size."""
    sidecar_row_scaled: bool = False
    """False: the draft's host rows are 576 bytes although the device's are 656."""
    sidecar_has_indexer: bool = False
    sidecar_extra_pages: int = 1
    gate_divides_by_ranks: bool = False
    gate_cgroup: Literal["no", "page cache counts as used", "page cache credited"] = "no"
    auto_size: bool = False
    plain_tree: Literal["HiRadixCache", "UnifiedRadixCache"] = "HiRadixCache"
    """The cache class of plain MLA and GQA models with HiCache; DSA models always get UnifiedRadixCache."""
    raw_row_rule: Literal["either backend", "local role"] = "either backend"
    """Whose DSA backend being trtllm makes FP8 rows raw (576)."""
    raw_row_tilelang: bool = False
    """Tilelang for prefill and decode on CUDA makes FP8 rows raw too."""
    sm120_glm_scaled: bool = False
    """GLM on SM120 defaults to flashinfer_sparse_mla (656), else to trtllm (576)."""
    honours_indexer_types: bool = False
    """The model's explicit `indexer_types` list is read."""
    attn_cp_kept: bool = False
    """False: `--attn-cp-size` under DSA prefill CP is overwritten by tp // dp."""
    dcp_in_host_pool: bool = False
    jit_one_layer_row_multiple: int | None = 128
    """The one-layer JIT copy kernel needs row bytes that are a multiple of this; None: another rule, not evaluated."""
    prefetch_clock: str = "operation creation, hit pages found so far"


_0_5_16 = Profile("0.5.16")
_0_5_17 = replace(_0_5_16, version="0.5.17", cell_charges_scaled_row=True, sm120_glm_scaled=True, dcp_in_host_pool=True)
_0_5_18 = replace(
    _0_5_17,
    version="0.5.18",
    device_index_elision="alone",
    layersplit_cell_divides_index=False,
    mtp_packed=True,
    sidecar_row_scaled=True,
    sidecar_has_indexer=True,
)
_0_5_19 = replace(_0_5_18, version="0.5.19", gate_divides_by_ranks=True, plain_tree="UnifiedRadixCache")
_0_5_20 = replace(_0_5_19, version="0.5.20", raw_row_rule="local role", honours_indexer_types=True)
_0_5_21 = replace(
    _0_5_20,
    version="0.5.21",
    auto_size=True,
    gate_cgroup="page cache counts as used",
    jit_one_layer_row_multiple=None,
)
_0_5_22 = replace(
    _0_5_21,
    version="0.5.22",
    device_index_elision="always",
    host_index_elision=True,
    layersplit_cell_divides_index=True,
    gate_cgroup="page cache credited",
    raw_row_tilelang=True,
    attn_cp_kept=True,
)
_0_5_23 = replace(
    _0_5_22, version="0.5.23", sidecar_extra_pages=0, prefetch_clock="the first blocked poll, requested pages"
)

PROFILES: dict[str, Profile] = {
    profile.version: profile for profile in (_0_5_16, _0_5_17, _0_5_18, _0_5_19, _0_5_20, _0_5_21, _0_5_22, _0_5_23)
}


@cache
def version_key(version: str) -> tuple[int, ...]:
    """Sortable numbers of a version; a suffix (`.post1`, `rc2`, `+cu129`) does not count."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    if match is None:
        raise PlanError(f"--sglang {version!r}: a version such as {DEFAULT_VERSION} is accepted")
    return tuple(int(part) for part in match.group(1).split("."))


def profile_for(version: str | None) -> tuple[Profile, SglangVersion]:
    """The profile that computes `version` (the default when None): its own, else the nearest release's."""
    asked = version or DEFAULT_VERSION
    key = version_key(asked)
    # A local part (`+cu129`) is another build of the same code; `.post1` and `rc1` are other code.
    own = PROFILES.get(asked.removeprefix("v").partition("+")[0])
    if own is not None:
        return own, SglangVersion(asked, own.version, True)
    older = [profile for name, profile in PROFILES.items() if version_key(name) <= key]
    nearest = older[-1] if older else next(iter(PROFILES.values()))
    return nearest, SglangVersion(asked, nearest.version, False)
