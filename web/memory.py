"""Memory use of a process: garbage collection and the allocator."""

import atexit
import ctypes
import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Constants from glibc's malloc.h.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BLOCK_BYTES = 128 * 1024
_PROPORTIONAL_SIZE = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)


def measure_proportional_bytes(pid: int) -> int:
    """Return the memory of a process, including its share of memory used by several processes.

    This is the proportional set size (proc_pid_smaps(5)). If the kernel does not provide it, return
    the resident set size, which counts all shared memory. Without /proc, return 0.
    """
    place = Path("/proc") / str(pid)
    with suppress(OSError):
        found = _PROPORTIONAL_SIZE.search((place / "smaps_rollup").read_bytes())
        if found:
            return int(found[1]) * 1024
    with suppress(OSError):
        return int((place / "statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def freeze_loaded_objects() -> None:
    """Exempt existing objects from garbage collection, and skip the collection at exit.

    This function also turns on the collector, which is off while a process loads.

    Modules, classes and prepared statements live as long as the process. Each full collection would
    search about 160,000 objects (100 ms). The interpreter also collects several times at exit,
    which takes half a second of the two seconds that a command runs.
    """
    gc.freeze()
    gc.enable()
    atexit.register(gc.freeze)


@contextmanager
def suspend_garbage_collection() -> Iterator[None]:
    """Suspend garbage collection while the block loads code, which frees no objects.

    Collection takes a quarter of the application's loading time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def limit_allocator_memory() -> None:
    """Return freed blocks of 128 KiB or more to the system, and use one arena for smaller blocks.

    glibc raises its mmap threshold to the size of the largest block ever freed. After a few
    webhooks of several megabytes, a process would stay three times as large. glibc also creates an
    arena per thread, and arenas never shrink. Python runs one thread at a time, so one arena is
    enough. Other C libraries do not behave like this and do not provide the function.
    """
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
        libc.mallopt(_M_ARENA_MAX, 1)
