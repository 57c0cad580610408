"""Limits of web server processes for open files and for thread switching."""

import sys
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

#: Switch interval of threads in seconds, a tenth of the interpreter's default.
_TURN_SECONDS = 0.0005


def take_short_turns() -> None:
    """Make computing threads yield sooner to the thread that serves requests.

    The serving thread releases the interpreter at each system call, several times per request. If
    another thread reads a large body or checks a file, it then waits for a whole interval.
    """
    sys.setswitchinterval(_TURN_SECONDS)


#: Number of other open files, such as database connections.
_OTHERS = 256
#: Number of files per connection. A request that is relayed to a heavy process needs a second file.
_FILES_OF_CONNECTION = 2


def allow_connections(wanted: int) -> int:
    """Raise the soft limit on open files; return the possible number of connections."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    files = _FILES_OF_CONNECTION * wanted + _OTHERS
    if soft != RLIM_INFINITY and soft < files:
        soft = files if hard == RLIM_INFINITY else min(files, hard)
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    if soft == RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, (soft - _OTHERS) // _FILES_OF_CONNECTION))
