"""How many connections a process may hold: each is an open file, and the system counts those."""

from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

#: Files, connections to the database, and what else a process has open.
_OTHERS = 256


def allow_connections(wanted: int) -> int:
    """Ask the system for room for so many connections, and return how many there is room for."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    if soft != RLIM_INFINITY and soft < wanted + _OTHERS:
        soft = wanted + _OTHERS if hard == RLIM_INFINITY else min(wanted + _OTHERS, hard)
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == RLIM_INFINITY else max(1, min(wanted, soft - _OTHERS))
