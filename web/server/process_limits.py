"""Limits of web server processes for open files and for thread switching."""

import sys
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

#: Switch interval of threads in seconds, a tenth of the interpreter's default.
_SWITCH_INTERVAL_SECONDS = 0.0005


def shorten_switch_interval() -> None:
    """Make computing threads yield sooner to the thread that serves requests.

    The serving thread releases the interpreter at each system call, several times per request. If
    another thread reads a large body or checks a file, the serving thread then waits for a whole
    interval.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)


#: Number of other open files, such as database connections.
_OTHER_OPEN_FILES = 256
#: Number of file descriptors per connection. A request that is relayed to the process for heavy
#: requests needs a second descriptor.
_FILES_PER_CONNECTION = 2


def raise_file_limit(wanted: int) -> int:
    """Raise the soft limit on open files, and return the possible number of connections."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    files = _FILES_PER_CONNECTION * wanted + _OTHER_OPEN_FILES
    if soft != RLIM_INFINITY and soft < files:
        soft = files if hard == RLIM_INFINITY else min(files, hard)
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    if soft == RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, (soft - _OTHER_OPEN_FILES) // _FILES_PER_CONNECTION))
