"""What the stand-in node says it was started with, and the sizes that follow from it.

It is a scale model: the real GLM-5.2 geometry with an L2 of 0.05 GB a rank instead of 120 GB. L1 is held to 640 tokens
by `--max-total-tokens`, so that L2 stays larger than L1 as on a real node.
"""

from __future__ import annotations

from msgspec import Struct

VERSION = "0.5.18"
MODEL_PATH = "zai-org/GLM-5.2-FP8"
MODEL_NAME = "GLM-5.2-FP8"
HOST = "127.0.0.1"
RANKS = 8
PAGE_TOKENS = 64
DEVICE_TOKENS = 640
CONTEXT_TOKENS = 202752
HICACHE_GB = 0.05
REAL_HICACHE_GB = 120
CONSOLE = ("python", "-m", "sglang.launch_server")


class PoolSizes(Struct, frozen=True):
    """One rank's host pools and its bytes a token (design: planned against seen)."""

    tokens: int
    primary_bytes: int
    indexer_bytes: int
    """What SGLang checks and logs."""
    indexer_allocated_bytes: int
    bytes_per_token: int
    device_bytes_per_token: int

    @property
    def allocated_bytes(self) -> int:
        return self.primary_bytes + self.indexer_allocated_bytes


def launch_flags(port: int, all_schedulers: bool = True, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The flags of the launch line, as a user would have typed them."""
    flags = ["--model-path", MODEL_PATH, "--served-model-name", MODEL_NAME]
    flags += ["--tp-size", str(RANKS), "--kv-cache-dtype", "fp8_e4m3", "--max-total-tokens", str(DEVICE_TOKENS)]
    flags += ["--enable-hierarchical-cache", "--hicache-size", str(HICACHE_GB)]
    flags += ["--hicache-write-policy", "write_through", "--enable-metrics"]
    if all_schedulers:
        flags.append("--enable-metrics-for-all-schedulers")
    flags += ["--enable-cache-report", *extra, "--host", HOST, "--port", str(port)]
    return tuple(flags)


def launch_line(port: int, all_schedulers: bool = True, extra: tuple[str, ...] = ()) -> str:
    """The command line that the main process shows."""
    return " ".join((*CONSOLE, *launch_flags(port, all_schedulers, extra)))


def pool_sizes(hicache_gb: float) -> PoolSizes:
    """Sizes for GLM-5.2 in FP8 on SM90, page 64, without MTP (facts: version-changes.md section 4)."""
    row, layers, index_page = 656, 78, 8448
    wanted = int(hicache_gb * 1e9 / (row * layers))
    pages = wanted // PAGE_TOKENS + 1
    tokens = pages * PAGE_TOKENS
    per_token = row * layers + index_page * layers // PAGE_TOKENS
    return PoolSizes(
        tokens=tokens,
        primary_bytes=tokens * row * layers,
        indexer_bytes=pages * layers * index_page,
        indexer_allocated_bytes=(pages + 1) * layers * index_page,
        bytes_per_token=per_token,
        device_bytes_per_token=per_token,
    )
