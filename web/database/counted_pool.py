"""A pool of connections that counts how often it runs out, for /metrics."""

from sqlalchemy import PoolProxiedConnection, QueuePool
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from web.database.pool_counts import count_last_connection_taken, count_pool_timeout


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
