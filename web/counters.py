"""Counts requests: where all processes do it together, or here while that place is away."""

import logging
from threading import Lock
from time import monotonic
from typing import Any, Protocol

from flask import Flask

_log = logging.getLogger("gatebell.counters")
#: Nobody waits longer for a count, in seconds: it is there to protect the service.
_PATIENCE = 0.5
#: So many seconds a store that failed is left alone.
_RECOVERY = 5.0
#: So many seconds pass before expired counts of this process are looked for again.
_SWEEP = 10.0
_IN_MEMORY = "memory://"
_REDIS = frozenset({"redis", "rediss", "redis+unix"})


class Store(Protocol):
    """Where counts are kept: a storage of the package limits, or this process."""

    def incr(self, key: str, expiry: int) -> int:
        """Count one more, and return how many there are; forget them after `expiry` seconds."""


class ProcessCounts:
    """Counts of this process alone.

    The in-memory storage of limits starts a thread to forget what has expired, under load for
    every other request; here whoever counts something new forgets, now and then.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._counts: dict[str, tuple[int, float]] = {}
        self._lock = Lock()
        self._next_sweep = monotonic() + _SWEEP

    def incr(self, key: str, expiry: int) -> int:
        """Count one more, and return how many there are; forget them after `expiry` seconds."""
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
    """Counters that go on counting: a store that is away must not stop the service.

    Meanwhile each process counts for itself, so that a limit is still one, if a wider one.
    """

    def __init__(self, shared: Store, own: ProcessCounts) -> None:
        """Take the store that RATELIMIT_STORAGE_URI names, and our own for when it is away."""
        self._shared = shared
        self._own = own
        #: When a store that failed is asked again; None while all is well.
        self._next_try: float | None = None

    def add(self, key: str, *, seconds: int) -> int:
        """Count one more, and return how many there are; a count is forgotten after `seconds`."""
        if not self._may_ask(monotonic()):
            return self._own.incr(key, seconds)
        try:
            count = self._shared.incr(key, seconds)
        except Exception as error:  # noqa: BLE001 - each store has errors of its own
            self._next_try = monotonic() + _RECOVERY
            # The address of the store may hold a password, and the text of an error the address.
            _log.warning("counter store is away", extra={"kind": type(error).__name__})
            return self._own.incr(key, seconds)
        if self._next_try is not None:
            self._next_try = None
            _log.warning("counter store is back")
        return count

    def _may_ask(self, moment: float) -> bool:
        """Tell whether to ask the store; of all who meet one that failed, one tries it."""
        if self._next_try is None:
            return True
        if moment < self._next_try:
            return False
        self._next_try = moment + _RECOVERY
        return True


def open_counters(app: Flask, storage_uri: str) -> Counters:
    """Open the store as Flask-Limiter does, without its hooks, which every request would pay for.

    The few places that have a limit ask for it themselves (`web/http/rate_limits.py`).
    """
    own = ProcessCounts()
    return Counters(own if storage_uri == _IN_MEMORY else _shared_store(app, storage_uri), own)


def _shared_store(app: Flask, storage_uri: str) -> Store:
    # Loads much that most installations never use, a terminal's colours among it.
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
    """Return how long to wait, in the words of each client; the other stores have none."""
    scheme = storage_uri.partition(":")[0]
    if scheme in _REDIS:
        # Every start and every command would pay for what few installations have.
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

        once = Retry(NoBackoff(), 0)  # the client itself would try again for seconds
        return {"socket_timeout": _PATIENCE, "socket_connect_timeout": _PATIENCE, "retry": once}
    if scheme == "memcached":
        return {"timeout": _PATIENCE, "connect_timeout": _PATIENCE}
    return {}
