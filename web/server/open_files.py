"""The limit of open files, which limits the connections of a process."""

from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

#: Files, database connections and whatever else a process has open.
_OTHERS = 256


def allow_connections(wanted: int) -> int:
    """Raise the soft limit for so many connections, and return how many are possible."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    if soft != RLIM_INFINITY and soft < wanted + _OTHERS:
        soft = wanted + _OTHERS if hard == RLIM_INFINITY else min(wanted + _OTHERS, hard)
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == RLIM_INFINITY else max(1, min(wanted, soft - _OTHERS))
