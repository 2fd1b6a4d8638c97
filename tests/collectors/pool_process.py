"""Run as a program: maps a host pool as SGLang's allocators do and waits to be killed.

Arguments: kind (shared_anon, hugetlb, memfd, private_thp, pinned, fork), size in bytes. `pinned` is shared_anon with
its pages pinned for good through io_uring's registered buffers, as a driver pins them; `fork` starts a child that
inherits the mapping and touches none of it. Prints one JSON object: pid, address, child.
"""

import ctypes
import json
import mmap
import os
import signal
import sys

MAP_POPULATE = 0x8000
MAP_HUGETLB = 0x40000
MADV_DONTFORK = 10
MADV_HUGEPAGE = 14
SYS_IO_URING_SETUP = 425
SYS_IO_URING_REGISTER = 427


def main() -> None:
    kind, size = sys.argv[1], int(sys.argv[2])
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    pool = _mapped(kind, size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pool))
    if kind == "pinned":
        _pin(address, size)
    child = os.fork() if kind == "fork" else None
    if child == 0:
        # A fork does not inherit it.
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        signal.pause()
    print(json.dumps({"pid": os.getpid(), "address": address, "child": child}), flush=True)
    while True:
        signal.pause()


def _mapped(kind: str, size: int) -> mmap.mmap:
    shared = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | MAP_POPULATE
    if kind == "hugetlb":
        return mmap.mmap(-1, size, shared | MAP_HUGETLB)
    if kind == "memfd":
        fd = os.memfd_create("sglang_host_pool_ab12cd34")
        os.ftruncate(fd, size)
        return mmap.mmap(fd, size, mmap.MAP_SHARED | MAP_POPULATE)
    if kind == "private_thp":
        pool = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pool.madvise(MADV_DONTFORK)
        pool.madvise(MADV_HUGEPAGE)
        pool[::4096] = b"x" * (size // 4096)
        return pool
    return mmap.mmap(-1, size, shared)


def _pin(address: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = (ctypes.c_uint32 * 30)()
    ring = libc.syscall(SYS_IO_URING_SETUP, 4, parameters)
    buffers = (ctypes.c_size_t * 2)(address, size)
    if ring < 0 or libc.syscall(SYS_IO_URING_REGISTER, ring, 0, buffers, 1) < 0:
        sys.exit(f"cannot pin: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
