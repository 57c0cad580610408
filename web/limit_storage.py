"""Where Flask-Limiter counts: in this process, or in the shared store of RATELIMIT_STORAGE_URI."""

from pathlib import Path
from ssl import TLSVersion
from threading import Lock
from typing import Any

from limits.storage import Storage

from domain.clock import system_clock
from domain.encryption.outgoing import OUTGOING_SUITES

_IN_MEMORY = "memory://"
#: Timeout of a shared store in seconds.
_PATIENCE = 0.5
#: Seconds between removals of expired counts.
_SWEEP = 10.0
_REDIS = frozenset({"redis", "rediss", "redis+unix"})


def _seconds() -> float:
    return system_clock().timestamp()


class ProcessStorage(Storage):
    """Counts of this process, registered with `limits` as `process://`.

    The `memory://` of `limits` starts a thread that looks at all counts up to a hundred times a
    second; here an increment removes the expired ones, now and then. Windows begin with the clock,
    so that all processes tell the same end of a window.
    """

    STORAGE_SCHEME = ["process"]  # noqa: RUF012 - the name and type that `limits` wants

    def __init__(self, uri: str | None = None, **options: Any) -> None:
        """Start without counts."""
        super().__init__(uri, **options)
        #: The count of each key, and when it ends in seconds since the epoch.
        self._counts: dict[str, tuple[int, int]] = {}
        self._lock = Lock()
        self._next_sweep = _seconds() + _SWEEP

    @property
    def base_exceptions(self) -> tuple[type[Exception], ...]:
        """The errors of this storage: none."""
        return ()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add to a counter and return it; it ends with its window of `expiry` seconds."""
        moment = _seconds()
        with self._lock:
            count, ends = self._counts.get(key, (0, 0))
            if moment >= ends:
                count, ends = 0, (int(moment) // expiry + 1) * expiry
            self._counts[key] = (count + amount, ends)
            if moment >= self._next_sweep:
                self._next_sweep = moment + _SWEEP
                self._counts = {k: kept for k, kept in self._counts.items() if moment < kept[1]}
        return count + amount

    def get(self, key: str) -> int:
        """Return a counter, 0 without one."""
        count, ends = self._counts.get(key, (0, 0))
        return count if _seconds() < ends else 0

    def get_expiry(self, key: str) -> float:
        """Return the end of a counter's window in seconds since the epoch, now without one."""
        _, ends = self._counts.get(key, (0, 0))
        return max(ends, _seconds())

    def check(self) -> bool:
        """Return whether the storage can be used, which it always can."""
        return True

    def reset(self) -> int:
        """Remove all counters and return their number."""
        with self._lock:
            removed, self._counts = len(self._counts), {}
        return removed

    def clear(self, key: str) -> None:
        """Remove a counter."""
        with self._lock:
            self._counts.pop(key, None)


def storage_configuration(storage_uri: str, trusted_ca_file: Path | None = None) -> dict[str, Any]:
    """Return Flask-Limiter's configuration of the store at RATELIMIT_STORAGE_URI."""
    if storage_uri == _IN_MEMORY:
        return {"RATELIMIT_STORAGE_URI": f"{ProcessStorage.STORAGE_SCHEME[0]}://"}
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
