"""A pool of connections that counts how often it runs out, for /metrics."""

import sys
from typing import Any

from sqlalchemy import PoolProxiedConnection, QueuePool
from sqlalchemy.exc import TimeoutError as PoolTimeoutError


def count_last_connection_taken() -> None:
    """Count that a pool has no further connection to the database."""
    metrics = _metrics()
    if metrics is not None:
        metrics.count_last_connection_taken()


def count_pool_timeout() -> None:
    """Count a request that has waited for a connection to the database in vain."""
    metrics = _metrics()
    if metrics is not None:
        metrics.count_pool_timeout()


def _metrics() -> Any:
    # `gunicorn.conf.py` asks the database before it says where the processes count, and the library
    # reads that when it is imported. So this counts only where something else has imported it.
    return sys.modules.get("web.metrics")


class CountedPool(QueuePool):
    """SQLAlchemy's pool, counted."""

    def connect(self) -> PoolProxiedConnection:
        """Return a connection; raise TimeoutError if none was given back in time."""
        try:
            taken = super().connect()
        except PoolTimeoutError:
            count_pool_timeout()
            raise
        if self.checkedout() >= self.size():
            count_last_connection_taken()
        return taken
