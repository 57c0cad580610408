"""Tells Python's garbage collector what is no garbage."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
