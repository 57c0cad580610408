"""What a process keeps in memory: objects that are no garbage, and blocks that were freed."""

import atexit
import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: malloc.h of glibc.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE = 128 * 1024


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
