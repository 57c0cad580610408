"""Number of rows that a job handles in one transaction."""

from web.settings.reader import Settings

#: Seconds for which a transaction of a job may hold SQLite's write lock, if it has several rows.
_LONGEST_SECONDS = 0.025
#: The first transaction has the maximum number of rows divided by this number.
_FIRST_DIVISOR = 100


class BatchSize:
    """Batch size that follows the duration of transactions on SQLite.

    SQLite allows only one writer, and a single row may take long: an alert may page hundreds of
    users. A job therefore starts with few rows, and handles up to twice as many rows after a short
    transaction, or fewer after a long one. On Postgres, the size does not change.
    """

    def __init__(self, settings: Settings, *, most: int) -> None:
        """Start with few rows on SQLite, and with the maximum on Postgres."""
        self._most = most
        self._is_fixed = not settings.uses_sqlite
        self._first = most if self._is_fixed else max(1, most // _FIRST_DIVISOR)
        #: Maximum number of rows in the next transaction.
        self.rows = self._first

    def record_transaction(self, rows: int, seconds: float) -> None:
        """Record how many rows a transaction handled, and for how many seconds it held the lock."""
        if self._is_fixed or rows < self.rows:  # nothing is left, and the next rows may take longer
            self.rows = self._first
            return
        affordable = int(rows * _LONGEST_SECONDS / seconds) if seconds else self._most
        self.rows = max(1, min(affordable, 2 * rows, self._most))
