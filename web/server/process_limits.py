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


def allow_connections(wanted: int) -> int:
    """Raise the soft limit for so many connections, and return how many are possible."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    if soft != RLIM_INFINITY and soft < wanted + _OTHERS:
        soft = wanted + _OTHERS if hard == RLIM_INFINITY else min(wanted + _OTHERS, hard)
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == RLIM_INFINITY else max(1, min(wanted, soft - _OTHERS))
