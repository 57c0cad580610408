"""Work in a child process, whose modules and memory the parent does not keep."""

import os
import signal
import sys
from collections.abc import Callable
from threading import Thread

from web.standard_streams import drain_standard_streams


def run_in_child(work: Callable[[], None]) -> None:
    """Call a function in a child process, which frees the memory of the modules that it loads.

    Exit with the status of the child if the function fails. The child ends when this process dies.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        Thread(target=_exit_with_parent, args=(reading,), daemon=True).start()
        work()
        drain_standard_streams()
        os._exit(0)
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(writing)
    if status < 0:
        signal.raise_signal(-status)
    if status:
        sys.exit(status)


def _exit_with_parent(reading: int) -> None:
    """Exit when the parent dies, which closes the other end of a pipe."""
    os.read(reading, 1)
    os._exit(1)
