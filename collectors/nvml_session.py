"""The one NVML session of this process: opened when first needed, closed so that a GPU can be reset.

An open session keeps `/dev/nvidia*` open, which blocks GPU reset, MIG changes and driver unload.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import threading
import warnings
from collections.abc import Callable
from typing import Any

from ranktop.sample import NoData, SourceError

LIBRARY = "libnvidia-ml.so.1"
RETRY_SECONDS = 30.0

UNINITIALIZED = 1
NOT_SUPPORTED = 3
NO_PERMISSION = 4
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 18

_WORDS = {
    UNINITIALIZED: "uninitialized",
    NOT_SUPPORTED: "not_supported",
    NO_PERMISSION: "no_permission",
    DRIVER_NOT_LOADED: "driver_not_loaded",
    10: "timeout",
    LIBRARY_NOT_FOUND: "library_not_found",
    FUNCTION_NOT_FOUND: "function_not_found",
    GPU_IS_LOST: "lost",
    RESET_REQUIRED: "reset_required",
    VERSION_MISMATCH: "version_mismatch",
    999: "unknown_error",
}


def word_of(code: int) -> str:
    """NVML's return code (nvmlReturn_t of nvml.h) as the word that states and findings use."""
    return _WORDS.get(code, f"error_{code}")


class NvmlSession:
    """Opens and closes NVML. `hold=False` lets go of it after every reading.

    `release` and `resume` return at once and may be called from the screen's thread; the reading thread acts on them.
    """

    def __init__(self, *, hold: bool = True, proc_root: str | os.PathLike[str] = "/proc") -> None:
        self.hold = hold
        self.opened = 0
        """How often it was opened: handles of an earlier session are void."""
        self._proc_root = os.fspath(proc_root)
        self._lock = threading.Lock()
        self._nvml: Any = None
        self._refused: NoData | SourceError | None = None
        self._retry_at = 0.0
        self._lasts = False
        self._released = False
        self._waits: list[Callable[[], str | None]] = []

    def before_close(self, wait: Callable[[], str | None]) -> None:
        """Register a user of the session: asked to let go, it returns None, or says what it still waits for."""
        self._waits.append(wait)

    def open(self, now: float) -> Any:
        """The `pynvml` module with a session open. Raises NoData or SourceError with what to do."""
        with self._lock:
            if self._released:
                self._close()
                raise NoData("NVML was let go on request, a GPU can be reset now", "released")
            if self._refused is not None and (self._lasts or 0 <= self._retry_at - now <= RETRY_SECONDS):
                # Without its traceback, to which every raise of the same exception would add.
                raise self._refused.with_traceback(None)
            if self._nvml is None:
                try:
                    self._nvml = self._initialised()
                except (NoData, SourceError) as refused:
                    self._refused = refused
                    # The old library stays mapped in this process: a mismatch lasts until ranktop is started again.
                    self._lasts = refused.code == "version_mismatch"
                    self._retry_at = now + RETRY_SECONDS
                    raise
                self.opened += 1
            self._refused = None
            return self._nvml

    @property
    def is_released(self) -> bool:
        return self._released

    def release(self) -> None:
        """Let go of NVML at the next reading, until `resume`."""
        self._released = True

    def resume(self) -> None:
        self._released = False

    def after_reading(self) -> None:
        """Let go when the session is not to be held. With a call still out it stays open until a later reading."""
        if not self.hold:
            with self._lock, contextlib.suppress(SourceError):
                self._close()

    def reopen(self) -> None:
        """NVML forgot its session (a driver reload): the next `open` starts anew."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._nvml is None:
            return
        for wait in self._waits:
            waiting = wait()
            if waiting is not None:
                raise SourceError(f"NVML cannot be closed: {waiting} (quit ranktop to let go)", "busy")
        nvml, self._nvml = self._nvml, None
        try:
            nvml.nvmlShutdown()
        except nvml.NVMLError as error:
            if error.value != UNINITIALIZED:
                raise SourceError(f"nvmlShutdown: {error}", word_of(error.value)) from error

    def _initialised(self) -> Any:
        try:
            # Before the import, which takes 0.1 s: most machines without a driver lack the library.
            ctypes.CDLL(LIBRARY)
        except OSError:
            raise NoData(f"no NVIDIA driver here ({LIBRARY} is not installed)", "absent") from None
        with warnings.catch_warnings():
            # The `pynvml` distribution, a shim over nvidia-ml-py, warns at import; that would land on the screen.
            warnings.simplefilter("ignore")
            import pynvml
        nvml: Any = pynvml
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            raise self._refusal(error.value, str(error)) from error
        return nvml

    def _refusal(self, code: int, text: str) -> NoData | SourceError:
        word = word_of(code)
        if code in (DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND):
            return NoData("the NVIDIA kernel driver is not loaded (modprobe nvidia, or not a GPU node)", word)
        if code == VERSION_MISMATCH:
            loaded, library = loaded_driver_version(self._proc_root), mapped_library_version()
            return SourceError(
                f"NVML: kernel driver {loaded or '?'} and library {library or '?'} differ; nothing is seen of the GPUs "
                "(load the matching driver or reboot, then start ranktop again)",
                word,
            )
        if code == NO_PERMISSION:
            return SourceError("nvmlInit: no permission (give this container or user /dev/nvidiactl)", word)
        return SourceError(f"nvmlInit: {text} (is nvidia-smi well?)", word)


def loaded_driver_version(proc_root: str) -> str | None:
    """The version of the loaded kernel module, from `/proc/driver/nvidia/version`."""
    try:
        with open(f"{proc_root}/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
            match = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", file.read(4096) + " ")
    except OSError:
        return None
    return match[1] if match else None


def mapped_library_version() -> str | None:
    """The version in the name of the NVML library that this process has mapped."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            match = re.search(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)?)", file.read(1 << 22))
    except OSError:
        return None
    return match[1] if match else None
