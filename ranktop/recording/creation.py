"""A new file that nobody else can read, that replaces nothing, and that two recorders cannot share."""

from __future__ import annotations

import fcntl
import os
import stat

from ranktop.recording.errors import RecordingError

MODE = 0o600


def create(path: str, overwrite: bool = False) -> int:
    """An empty file, mode 0600, locked by this process; the open descriptor holds the lock.

    RecordingError when something is there already (`overwrite` allows a regular file), or it cannot be made.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if overwrite else os.O_EXCL)
    try:
        descriptor = os.open(path, flags, MODE)
    except FileExistsError as problem:
        raise RecordingError(f"{path}: is there already (name another file, or give --overwrite)") from problem
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be made: {problem.strerror} (name another file)") from problem
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RecordingError(f"{path}: is no regular file (name another one)")
        if not lock(descriptor):
            raise RecordingError(f"{path}: another recorder writes it (name another file)")
        if overwrite:
            os.fchmod(descriptor, MODE)
            os.ftruncate(descriptor, 0)
            for suffix in ("-wal", "-shm", "-journal"):
                _remove(path + suffix)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def lock(descriptor: int) -> bool:
    """Take the recorder's lock. False when a recorder has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_recorded(path: str) -> bool:
    """Whether a recorder that this process can see has that file locked.

    Read from /proc/locks (proc_locks(5)): opening and closing the file would drop the locks that SQLite holds on it.
    """
    try:
        status = os.stat(path)
        with open("/proc/locks", encoding="ascii") as file:
            held = file.read()
    except OSError:
        return False
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return any(f" {device} " in line and "FLOCK" in line and "WRITE" in line for line in held.splitlines())


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
