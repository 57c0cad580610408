"""Gives memory back to the system once a large request is over."""

import ctypes
from contextlib import suppress

#: malloc.h of glibc.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def return_large_blocks() -> None:
    """Let go of blocks of 128 KiB and more as soon as they are free.

    glibc takes the largest block that was ever freed for one that will be needed again, and keeps
    as much in each thread: after a few webhooks of megabytes a process would stay three times as
    large. Other C libraries do no such thing, and do not know this function.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
