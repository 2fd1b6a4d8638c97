"""How the processes of a stand-in node end with the one that started them.

Every child reads a pipe from its parent, which closes when the parent ends, however it ends, even before the child
could ask. The ranks also ask the kernel for SIGKILL (prctl(2), PR_SET_PDEATHSIG), because a rank that is busy mapping
does not read its pipe. The main process does not: that signal follows the parent's thread, and a node may be started
from a thread that ends.
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Be killed when the parent's thread ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_PDEATHSIG): {os.strerror(number)}")
