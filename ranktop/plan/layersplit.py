"""LayerSplit: which layers each context-parallel rank owns. SGLang 0.5.16+, `layers/cp/utils.py`."""

from __future__ import annotations

from itertools import pairwise


def ranges(layers: int, parts: int) -> tuple[tuple[int, int], ...]:
    """Half-open contiguous ranges; the first `layers % parts` own one layer more. Pipeline stages: `stage_layers`."""
    base, extra = divmod(layers, parts)
    starts = [part * base + min(part, extra) for part in range(parts + 1)]
    return tuple(pairwise(starts))


def owners(layers: int, parts: int) -> tuple[int, ...]:
    """The owning rank of every layer."""
    return tuple(part for part, (start, end) in enumerate(ranges(layers, parts)) for _ in range(start, end))


def max_owned(layers: int, parts: int) -> int:
    """The most layers that any rank owns: ceil(layers / parts)."""
    return -(-layers // parts)


def layer_equivalents(layers: int, parts: int) -> int:
    """Full-size layer buffers a rank keeps: the most owned plus one scratch layer; all layers at one part."""
    return layers if parts <= 1 else max_owned(layers, parts) + 1


def reduction_percent(layers: int, parts: int) -> float:
    """The audit's scratch-included upper bound of the saving, in percent of the unsplit layers."""
    return round(100 * (1 - layer_equivalents(layers, parts) / layers), 4)
