"""What the stand-in node says it was started with, and the sizes that follow from it.

It is a scale model: the real GLM-5.2 geometry with an L2 of 0.05 GB a rank instead of 120 GB. L1 is held to 640 tokens
by `--max-total-tokens`, so that L2 stays larger than L1 as on a real node.
"""

from __future__ import annotations

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


def launch_flags(port: int, all_schedulers: bool = True, hicache_gb: float = HICACHE_GB) -> tuple[str, ...]:
    """The flags of the launch line, as a user would have typed them."""
    flags = ["--model-path", MODEL_PATH, "--served-model-name", MODEL_NAME]
    flags += ["--tp-size", str(RANKS), "--kv-cache-dtype", "fp8_e4m3", "--max-total-tokens", str(DEVICE_TOKENS)]
    flags += ["--enable-hierarchical-cache", "--hicache-size", str(hicache_gb)]
    flags += ["--hicache-write-policy", "write_through", "--enable-metrics"]
    if all_schedulers:
        flags.append("--enable-metrics-for-all-schedulers")
    flags += ["--enable-cache-report", "--host", HOST, "--port", str(port)]
    return tuple(flags)


def launch_line(port: int, all_schedulers: bool = True) -> str:
    """The command line that the main process shows."""
    return " ".join((*CONSOLE, *launch_flags(port, all_schedulers)))
