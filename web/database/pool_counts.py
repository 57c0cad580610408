"""Counts how often pools of connections run out, for /metrics.

`gunicorn.conf.py` asks the database before it says where the processes count, and the library reads
that when it is imported. So this does not import the metrics, and counts where something else has.
"""

import sys
from typing import Any


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
    return sys.modules.get("web.metrics")
