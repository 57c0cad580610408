"""Storage for Flask-Limiter's counts, on this host or at RATELIMIT_STORAGE_URI."""

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

from domain.core.clock import read_system_clock
from domain.core.tls import OUTGOING_CIPHER_SUITES

_IN_MEMORY_URI = "memory://"
#: Timeout of a shared store in seconds.
_STORE_TIMEOUT_SECONDS = 0.5
#: Layout of a counter: hash of its key, end in seconds since the epoch, and count.
_SLOT_LAYOUT = Struct("=QQQ")
_MAX_UINT64 = 2**64 - 1
#: Number of counters that the table can hold, in six megabytes. Unused memory is not allocated.
_SLOT_COUNT = 2**18
#: Number of adjacent slots in which a counter may be stored.
_SLOTS_PER_COUNTER = 8
#: Minimum number of seconds and of tries after which a process stops waiting for the lock. It then
#: counts without the lock for a while. The lock is normally held for microseconds.
_LOCK_TIMEOUT_SECONDS = 0.2
_MAX_LOCK_TRIES = 100
_UNLOCKED_SECONDS = 1.0
_REDIS_SCHEMES = frozenset({"redis", "rediss", "redis+unix"})


@cache
def _open_lock_file() -> int:
    """Return an open file that is locked while counters are changed.

    Child processes inherit the open file.
    """
    if hasattr(os, "memfd_create"):  # on Linux, where no directory is needed
        in_memory: int = os.memfd_create("gatebell-limits")
        return in_memory
    descriptor, name = mkstemp(prefix="gatebell-limits-")
    Path(name).unlink()  # the open file is sufficient
    return descriptor


class HostStorage(Storage):
    """Counts for all web processes on a host, registered with `limits` as `host://`.

    gunicorn loads the app before it forks, so its processes share this memory. The memory is a
    fixed-size table, in which each counter is stored in one of a few adjacent slots. Windows are
    aligned with the clock, so all hosts report the same end of a window. A slot is free once the
    window of its counter has ended. If all possible slots for a counter are taken, the counter with
    the lowest count is replaced.

    The `memory://` storage of `limits` counts only within one process. It also checks all counts up
    to a hundred times per second.
    """

    STORAGE_SCHEME = ["host"]  # noqa: RUF012 - the name and type that `limits` requires

    def __init__(self, uri: str | None = None, **options: Any) -> None:
        """Reserve the memory, which is allocated as counters are used."""
        super().__init__(uri, **options)
        self._table = mmap(-1, _SLOT_COUNT * _SLOT_LAYOUT.size)
        self._thread_lock = Lock()
        self._lock_file = _open_lock_file()
        self._next_lock_at = 0.0

    @property
    def base_exceptions(self) -> tuple[type[Exception], ...]:
        """Empty tuple of error types, because this storage raises no errors."""
        return ()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Increase a counter with a window of `expiry` seconds, and return its value."""
        return self.increment_with_expiry(key, expiry, amount)[0]

    def increment_with_expiry(self, key: str, expiry: int, amount: int = 1) -> tuple[int, int]:
        """Increase a counter, and return its value and the end of its window.

        The end is given in seconds since the epoch.
        """
        moment = read_system_clock().timestamp()
        with self._thread_lock:
            is_locked = self._lock_table()
            try:
                place, ends, count = self._find_counter(key, moment)
                ends = ends or (int(moment) // expiry + 1) * expiry
                _SLOT_LAYOUT.pack_into(
                    self._table, place, hash(key) & _MAX_UINT64, ends, count + amount
                )
            finally:
                if is_locked:
                    lockf(self._lock_file, LOCK_UN)
        return count + amount, ends

    def _lock_table(self) -> bool:
        """Lock the table briefly and return True, or False if a suspended process holds the lock.

        After a failure, this process counts without a lock for a while, so some counts may be lost.
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
            # On a busy machine, other processes may run for a long time between two tries.
            if tries > _MAX_LOCK_TRIES and monotonic() - began > _LOCK_TIMEOUT_SECONDS:
                self._next_lock_at = began + _UNLOCKED_SECONDS
        return False

    def _find_counter(self, key: str, moment: float) -> tuple[int, int, int]:
        """Return the position, end and count of a counter.

        For a new counter, return a free position, and 0 for the end and the count.
        """
        # The hash is the same in all processes forked from the same parent.
        mark = hash(key) & _MAX_UINT64
        best, least = 0, _MAX_UINT64
        for step in range(_SLOTS_PER_COUNTER):
            place = (mark + step) % _SLOT_COUNT * _SLOT_LAYOUT.size
            found, ends, count = _SLOT_LAYOUT.unpack_from(self._table, place)
            if ends <= moment:
                count = -1
            elif found == mark:
                return place, ends, count
            if count < least:
                best, least = place, count
        return best, 0, 0

    def get(self, key: str) -> int:
        """Return the value of a counter, or 0 if it does not exist."""
        return self._find_counter(key, read_system_clock().timestamp())[2]

    def get_expiry(self, key: str) -> float:
        """Return the end of a counter's window in seconds since the epoch.

        If the counter does not exist, return the current time.
        """
        moment = read_system_clock().timestamp()
        return self._find_counter(key, moment)[1] or moment

    def check(self) -> bool:
        """Return True, because the storage is always available."""
        return True

    def reset(self) -> int:
        """Remove all counters and return the number of counters whose window had not ended."""
        moment = read_system_clock().timestamp()
        with self._thread_lock:
            removed = sum(
                1 for _, ends, _ in _SLOT_LAYOUT.iter_unpack(self._table) if ends > moment
            )
            self._table[:] = bytes(len(self._table))
        return removed

    def clear(self, key: str) -> None:
        """Remove a counter."""
        with self._thread_lock:
            place, ends, _ = self._find_counter(key, read_system_clock().timestamp())
            if ends:
                _SLOT_LAYOUT.pack_into(self._table, place, 0, 0, 0)


def build_storage_configuration(
    storage_uri: str, trusted_ca_file: Path | None = None
) -> dict[str, Any]:
    """Return Flask-Limiter's configuration for the store at RATELIMIT_STORAGE_URI."""
    if storage_uri == _IN_MEMORY_URI:
        return {"RATELIMIT_STORAGE_URI": f"{HostStorage.STORAGE_SCHEME[0]}://"}
    return {
        "RATELIMIT_STORAGE_URI": storage_uri,
        "RATELIMIT_STORAGE_OPTIONS": {
            **_build_timeout_options(storage_uri),
            **_build_tls_options(storage_uri, trusted_ca_file),
        },
        # While the store is unavailable, each process counts by itself, so limits are higher but
        # still apply. If several requests detect the failure at the same time, only one of them is
        # counted.
        "RATELIMIT_IN_MEMORY_FALLBACK_ENABLED": True,
        "RATELIMIT_SWALLOW_ERRORS": True,
    }


def _build_timeout_options(storage_uri: str) -> dict[str, Any]:
    """Return the timeout options for the store's client."""
    scheme = storage_uri.partition(":")[0]
    if scheme in _REDIS_SCHEMES:
        # Few installations need these modules.
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

        once = Retry(NoBackoff(), 0)  # by default, the client would retry for several seconds
        return {
            "socket_timeout": _STORE_TIMEOUT_SECONDS,
            "socket_connect_timeout": _STORE_TIMEOUT_SECONDS,
            "retry": once,
        }
    if scheme == "memcached":
        return {"timeout": _STORE_TIMEOUT_SECONDS, "connect_timeout": _STORE_TIMEOUT_SECONDS}
    return {}


def _build_tls_options(storage_uri: str, trusted_ca_file: Path | None) -> dict[str, Any]:
    """Return redis-py's options for TLS 1.2 or higher without weak ciphers."""
    if not storage_uri.startswith("rediss:"):
        return {}
    options: dict[str, Any] = {
        "ssl_min_version": TLSVersion.TLSv1_2,
        "ssl_ciphers": OUTGOING_CIPHER_SUITES,
        "ssl_check_hostname": True,
    }
    return options | ({"ssl_ca_certs": str(trusted_ca_file)} if trusted_ca_file else {})
