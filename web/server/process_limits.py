"""Open files and turns of threads of the processes of the web server."""

import sys
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

#: Ten times as often as the interpreter does it by itself.
_TURN_SECONDS = 0.0005


def take_short_turns() -> None:
    """Let threads that compute give way sooner to the one that serves requests.

    It gives up the interpreter at each call of the system, several times for a request, and waits
    for it for a whole turn whenever a thread reads a large body or checks a file.
    """
    sys.setswitchinterval(_TURN_SECONDS)


#: Files, database connections and whatever else a process has open.
_OTHERS = 256
#: A connection whose request is relayed to a heavy process has a second file.
_FILES_OF_CONNECTION = 2


def allow_connections(wanted: int) -> int:
    """Raise the soft limit for so many connections, and return how many are possible."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    files = _FILES_OF_CONNECTION * wanted + _OTHERS
    if soft != RLIM_INFINITY and soft < files:
        soft = files if hard == RLIM_INFINITY else min(files, hard)
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    if soft == RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, (soft - _OTHERS) // _FILES_OF_CONNECTION))
