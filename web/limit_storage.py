"""Where Flask-Limiter counts: on this host, or in the shared store of RATELIMIT_STORAGE_URI."""

import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, lockf
from functools import cache
from mmap import mmap
from pathlib import Path
from ssl import TLSVersion
from struct import Struct
from tempfile import mkstemp
from threading import Lock
from time import monotonic
from typing import Any

from limits.storage import Storage

from domain.core.clock import system_clock
from domain.core.encryption import OUTGOING_SUITES

_IN_MEMORY = "memory://"
#: Timeout of a shared store in seconds.
_PATIENCE = 0.5
#: A counter: what stands for its key, when it ends in seconds since the epoch, and the count.
_SLOT = Struct("=QQQ")
_MOST = 2**64 - 1
#: Room for so many counters, six megabytes; memory that was never used is not taken.
_SLOTS = 2**18
#: In how many neighbouring slots a counter may lie.
_REACH = 8
#: How long to wait for a lock that is held for a few microseconds, and to do without afterwards.
_LOCK_SECONDS = 0.2
_TRIES = 100
_WITHOUT_LOCK_SECONDS = 1.0
_REDIS = frozenset({"redis", "rediss", "redis+unix"})


@cache
def _lock_file() -> int:
    """Return an open file that is locked while a counter changes; processes inherit it."""
    if hasattr(os, "memfd_create"):  # on Linux, where no directory is needed for it
        in_memory: int = os.memfd_create("gatebell-limits")
        return in_memory
    descriptor, name = mkstemp(prefix="gatebell-limits-")
    Path(name).unlink()  # the open file is all that is needed
    return descriptor


class HostStorage(Storage):
    """Counts of all web processes of a host, registered with `limits` as `host://`.

    gunicorn loads the app before it forks, so its processes share this memory: a table of a fixed
    size in which a counter lies in one of a few neighbouring slots. Windows begin with the clock,
    so all hosts tell the same end of a window, and a slot is free once the window of its counter
    has ended. If all slots of a counter are taken, the one that has counted least gives way.

    The `memory://` of `limits` counts in one process, and looks at all counts up to a hundred times
    a second.
    """

    STORAGE_SCHEME = ["host"]  # noqa: RUF012 - the name and type that `limits` wants

    def __init__(self, uri: str | None = None, **options: Any) -> None:
        """Take the memory, which needs none until something is counted."""
        super().__init__(uri, **options)
        self._table = mmap(-1, _SLOTS * _SLOT.size)
        self._thread_lock = Lock()
        self._lock_file = _lock_file()
        self._next_lock_at = 0.0

    @property
    def base_exceptions(self) -> tuple[type[Exception], ...]:
        """The errors of this storage: none."""
        return ()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add to a counter and return it; it ends with its window of `expiry` seconds."""
        return self.count(key, expiry, amount)[0]

    def count(self, key: str, expiry: int, amount: int = 1) -> tuple[int, int]:
        """Do the same, and return also the end of the window in seconds since the epoch."""
        moment = system_clock().timestamp()
        with self._thread_lock:
            is_locked = self._lock()
            try:
                place, ends, count = self._find(key, moment)
                ends = ends or (int(moment) // expiry + 1) * expiry
                _SLOT.pack_into(self._table, place, hash(key) & _MOST, ends, count + amount)
            finally:
                if is_locked:
                    lockf(self._lock_file, LOCK_UN)
        return count + amount, ends

    def _lock(self) -> bool:
        """Lock the table for a moment; return False if a process that stands still has locked it.

        Then this one counts without a lock for a while, which may lose a count.
        """
        began, tries = monotonic(), 0
        while began >= self._next_lock_at:
            try:
                lockf(self._lock_file, LOCK_EX | LOCK_NB)
            except OSError:
                os.sched_yield()
            else:
                return True
            tries += 1
            # On a busy machine others may run between two tries, for long.
            if tries > _TRIES and monotonic() - began > _LOCK_SECONDS:
                self._next_lock_at = began + _WITHOUT_LOCK_SECONDS
        return False

    def _find(self, key: str, moment: float) -> tuple[int, int, int]:
        """Return place, end and count of a counter; of one that is not there a place and 0."""
        # Alike in processes that were forked from one.
        mark = hash(key) & _MOST
        best, least = 0, _MOST
        for step in range(_REACH):
            place = (mark + step) % _SLOTS * _SLOT.size
            found, ends, count = _SLOT.unpack_from(self._table, place)
            if ends <= moment:
                count = -1
            elif found == mark:
                return place, ends, count
            if count < least:
                best, least = place, count
        return best, 0, 0

    def get(self, key: str) -> int:
        """Return a counter, 0 without one."""
        return self._find(key, system_clock().timestamp())[2]

    def get_expiry(self, key: str) -> float:
        """Return the end of a counter's window in seconds since the epoch, now without one."""
        moment = system_clock().timestamp()
        return self._find(key, moment)[1] or moment

    def check(self) -> bool:
        """Return whether the storage can be used, which it always can."""
        return True

    def reset(self) -> int:
        """Remove all counters and return the number of those that had not ended."""
        moment = system_clock().timestamp()
        with self._thread_lock:
            removed = sum(1 for _, ends, _ in _SLOT.iter_unpack(self._table) if ends > moment)
            self._table[:] = bytes(len(self._table))
        return removed

    def clear(self, key: str) -> None:
        """Remove a counter."""
        with self._thread_lock:
            place, ends, _ = self._find(key, system_clock().timestamp())
            if ends:
                _SLOT.pack_into(self._table, place, 0, 0, 0)


def storage_configuration(storage_uri: str, trusted_ca_file: Path | None = None) -> dict[str, Any]:
    """Return Flask-Limiter's configuration of the store at RATELIMIT_STORAGE_URI."""
    if storage_uri == _IN_MEMORY:
        return {"RATELIMIT_STORAGE_URI": f"{HostStorage.STORAGE_SCHEME[0]}://"}
    return {
        "RATELIMIT_STORAGE_URI": storage_uri,
        "RATELIMIT_STORAGE_OPTIONS": {
            **_timeouts(storage_uri),
            **_tls_options(storage_uri, trusted_ca_file),
        },
        # While the store is away each process counts for itself: wider limits, but limits. Of the
        # requests that find out together one falls back, and the others go uncounted.
        "RATELIMIT_IN_MEMORY_FALLBACK_ENABLED": True,
        "RATELIMIT_SWALLOW_ERRORS": True,
    }


def _timeouts(storage_uri: str) -> dict[str, Any]:
    """Return the timeout options of each store's client."""
    scheme = storage_uri.partition(":")[0]
    if scheme in _REDIS:
        # Imported here because few installations need it.
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

        once = Retry(NoBackoff(), 0)  # the client itself would try again for seconds
        return {"socket_timeout": _PATIENCE, "socket_connect_timeout": _PATIENCE, "retry": once}
    if scheme == "memcached":
        return {"timeout": _PATIENCE, "connect_timeout": _PATIENCE}
    return {}


def _tls_options(storage_uri: str, trusted_ca_file: Path | None) -> dict[str, Any]:
    """Return the options of redis-py for TLS 1.2 or higher without weak keys."""
    if not storage_uri.startswith("rediss:"):
        return {}
    options: dict[str, Any] = {
        "ssl_min_version": TLSVersion.TLSv1_2,
        "ssl_ciphers": OUTGOING_SUITES,
        "ssl_check_hostname": True,
    }
    return options | ({"ssl_ca_certs": str(trusted_ca_file)} if trusted_ca_file else {})
