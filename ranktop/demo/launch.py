"""What the stand-in node says it was started with, and the sizes that follow from it.

It is a scale model: the real GLM-5.2 geometry with an L2 of 0.05 GB a rank instead of 120 GB. L1 is held to 640 tokens
by `--max-total-tokens`, so that L2 stays larger than L1 as on a real node.
"""

from __future__ import annotations

from typing import NamedTuple

VERSION = "0.5.18"
VERSIONS = (VERSION, "0.5.23")
"""What a stand-in node can be."""
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


class Launch(NamedTuple):
    """What a scenario starts. `extra` are flags on top of the common ones."""

    extra: tuple[str, ...] = ()
    all_schedulers: bool = True
    hicache_gb: float | None = HICACHE_GB
    """None: no L2."""
    tp_size: int = RANKS
    version: str = VERSION

    @property
    def gpus(self) -> int:
        """GPUs of the host."""
        return max(RANKS, self.tp_size)

    def flags(self, port: int, bootstrap_port: int | None = None) -> tuple[str, ...]:
        """The flags, as a user would have typed them."""
        text = f"--model-path {MODEL_PATH} --served-model-name {MODEL_NAME} --tp-size {self.tp_size}"
        text += f" --kv-cache-dtype fp8_e4m3 --max-total-tokens {DEVICE_TOKENS} --enable-metrics"
        if self.hicache_gb is not None:
            text += f" --enable-hierarchical-cache --hicache-size {self.hicache_gb}"
            text += " --hicache-write-policy write_through"
        if self.all_schedulers:
            text += " --enable-metrics-for-all-schedulers"
        text += " --enable-cache-report"
        if bootstrap_port is not None:
            text += f" --disaggregation-bootstrap-port {bootstrap_port}"
        return (*text.split(), *self.extra, "--host", HOST, "--port", str(port))

    def line(self, port: int, bootstrap_port: int | None = None) -> str:
        """The command line that the main process shows."""
        return " ".join((*CONSOLE, *self.flags(port, bootstrap_port)))
