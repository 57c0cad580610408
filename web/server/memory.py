"""Returns memory to the system after large requests."""

import ctypes
from contextlib import suppress

#: malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def return_large_blocks() -> None:
    """Return freed blocks of 128 KiB and more to the system at once.

    glibc raises its mmap threshold to the largest block that was ever freed, in each thread: after
    a few webhooks of megabytes a process would stay three times as large. Other C libraries have no
    such threshold and no such function.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
