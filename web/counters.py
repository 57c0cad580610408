"""Request counters in the shared store, or in this process while the store is unavailable."""

import logging
from threading import Lock
from time import monotonic
from typing import Any, Protocol

from flask import Flask

_log = logging.getLogger("gatebell.counters")
#: Timeout of the store in seconds.
_PATIENCE = 0.5
#: Seconds before a store that failed is tried again.
_RECOVERY = 5.0
#: Seconds between removals of this process's expired counts.
_SWEEP = 10.0
_IN_MEMORY = "memory://"
_REDIS = frozenset({"redis", "rediss", "redis+unix"})


class CounterStore(Protocol):
    """A counter store: a storage of the package `limits`, or this process."""

    def incr(self, key: str, expiry: int) -> int:
        """Increment a counter and return it; it expires after `expiry` seconds."""


class ProcessCounts:
    """Counters of this process.

    The in-memory storage of `limits` starts a thread to remove expired counts, under load on every
    other request; here new counters trigger the removal, now and then.
    """

    def __init__(self) -> None:
        """Start without counts."""
        self._counts: dict[str, tuple[int, float]] = {}
        self._lock = Lock()
        self._next_sweep = monotonic() + _SWEEP

    def incr(self, key: str, expiry: int) -> int:
        """Increment a counter and return it; it expires after `expiry` seconds."""
        moment = monotonic()
        with self._lock:
            count, ends = self._counts.get(key, (0, moment + expiry))
            if moment >= ends:
                count, ends = 0, moment + expiry
            self._counts[key] = (count + 1, ends)
            if moment >= self._next_sweep:
                self._next_sweep = moment + _SWEEP
                self._counts = {k: kept for k, kept in self._counts.items() if moment < kept[1]}
        return count + 1


class Counters:
    """Counters that keep working while the shared store is unavailable.

    Each process counts for itself then, so that limits still apply, only wider.
    """

    def __init__(self, shared: CounterStore, own: ProcessCounts) -> None:
        """Take the store of RATELIMIT_STORAGE_URI and the fallback."""
        self._shared = shared
        self._own = own
        #: When the store is tried again; None while it works.
        self._next_try: float | None = None

    def add(self, key: str, *, seconds: int) -> int:
        """Increment a counter and return it; it expires after `seconds`."""
        if not self._may_ask(monotonic()):
            return self._own.incr(key, seconds)
        try:
            count = self._shared.incr(key, seconds)
        except Exception as error:  # noqa: BLE001 - each store has errors of its own
            self._next_try = monotonic() + _RECOVERY
            # The error may contain the store's URL, and that a password.
            _log.warning("counter store is away", extra={"kind": type(error).__name__})
            return self._own.incr(key, seconds)
        if self._next_try is not None:
            self._next_try = None
            _log.warning("counter store is back")
        return count

    def _may_ask(self, moment: float) -> bool:
        """Return whether to use the store; after a failure one caller at a time retries it."""
        if self._next_try is None:
            return True
        if moment < self._next_try:
            return False
        self._next_try = moment + _RECOVERY
        return True


def open_counters(app: Flask, storage_uri: str) -> Counters:
    """Open the store with Flask-Limiter, without its per-request hooks.

    The limited endpoints count themselves (`web/http/rate_limits.py`).
    """
    own = ProcessCounts()
    return Counters(own if storage_uri == _IN_MEMORY else _shared_store(app, storage_uri), own)


def _shared_store(app: Flask, storage_uri: str) -> CounterStore:
    # Imported here because it loads much that most installations never use.
    from flask_limiter import Limiter  # noqa: PLC0415
    from flask_limiter.util import get_remote_address  # noqa: PLC0415

    limiter = Limiter(
        get_remote_address, storage_uri=storage_uri, storage_options=_patience(storage_uri)
    )
    app.config["RATELIMIT_STORAGE_URI"] = storage_uri
    app.extensions["limiter"] = {limiter}  # known already: so it registers no hooks
    limiter.init_app(app)
    return limiter.storage


def _patience(storage_uri: str) -> dict[str, Any]:
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
