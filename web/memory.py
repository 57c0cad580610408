"""What a process keeps in memory: objects that are no garbage, and blocks that were freed."""

import atexit
import ctypes
import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: malloc.h of glibc.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE = 128 * 1024
_PROPORTIONAL = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)


def proportional_bytes(pid: int) -> int:
    """Return the memory of a process with its share of what it has in common with others.

    This is the proportional set size (proc_pid_smaps(5)). If the kernel does not give it, return
    the resident set size, which counts shared memory for each process; without /proc, return 0.
    """
    place = Path("/proc") / str(pid)
    with suppress(OSError):
        found = _PROPORTIONAL.search((place / "smaps_rollup").read_bytes())
        if found:
            return int(found[1]) * 1024
    with suppress(OSError):
        return int((place / "statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def keep_what_is_loaded() -> None:
    """Exempt the objects that exist now from garbage collection, and all objects at exit.

    It turns the collector on, which programs turn off while they load.

    Modules, classes and prepared statements live as long as the program: each full collection
    would search some 160,000 of them (100 ms), and the interpreter collects several times at exit
    (half a second of a command's two).
    """
    gc.freeze()
    gc.enable()
    atexit.register(gc.freeze)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Collect no garbage meanwhile: what loads makes many objects and gives up none.

    It takes a quarter of the time that the application takes to load.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def keep_little_memory() -> None:
    """Return freed blocks of 128 KiB and more to the system at once, and share the smaller ones.

    glibc raises its mmap threshold to the largest block that was ever freed: after a few webhooks
    of megabytes a process would stay three times as large. It also gives threads arenas of their
    own, each of which stays as large as it ever was; Python lets one thread run at a time, so one
    arena serves them all. Other C libraries have neither, and no such function.
    """
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_M_ARENA_MAX, 1)
