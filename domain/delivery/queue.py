"""Parts that all delivery queues share: pauses between attempts, and claims of due rows.

Each row of a queue has a column with the time of its next attempt. A worker claims a row by moving
this time into the future. If the worker is killed, the row becomes due again at that time, and
another worker claims it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Result, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.core.database.bulk_statements import build_bulk_update

#: Number of doublings after which every pause has reached its maximum. It limits the exponent.
_MAX_DOUBLINGS = 32


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Pauses between failed attempts, which double from the first pause to a maximum."""

    first: timedelta
    longest: timedelta
    #: Fraction by which pauses vary randomly in both directions, so that rows that failed together
    #: are not retried together.
    jitter: float = 0.0

    @property
    def longest_varied(self) -> timedelta:
        """The longest pause, including its random variation."""
        return self.longest * (1 + self.jitter)

    def compute_pause(
        self, failures: int, *, share: float = 0.5, requested: timedelta = timedelta(0)
    ) -> timedelta:
        """Return the pause after a number of consecutive failures.

        `share`, a number from 0 to 1, selects the random variation; 0.5 means none. If the receiver
        requested a longer pause, that pause is returned, up to the longest pause.
        """
        doublings = min(max(failures, 1) - 1, _MAX_DOUBLINGS)
        pause = min(self.first * float(2**doublings), self.longest)
        varied = pause * (1 + self.jitter * (2 * share - 1))
        return max(varied, min(requested, self.longest_varied))


@dataclass(frozen=True, kw_only=True)
class DeliveryQueue:
    """A table whose due rows workers claim one after the other, longest waiting first."""

    #: Column with the time of the next attempt. It is NULL if no attempt is due.
    due_at: InstrumentedAttribute[Any]
    #: Column with the number of attempts, which each claim increases, if there is one.
    attempts: InstrumentedAttribute[Any] | None = None
    #: Time for which a worker claims a row. It exceeds the duration of an attempt.
    claim_lifetime: timedelta
    backoff: Backoff
    #: Condition that rows must also meet to be claimed, if any.
    condition: ColumnElement[bool] | None = None

    def claim_due_rows(
        self, *returned: Any, maximum: int = 1, session: Session, now: datetime
    ) -> Result[Any]:
        """Claim up to `maximum` due rows, and return these columns of each claimed row.

        Rows that another worker has locked are skipped.
        """
        table: Any = self.due_at.class_
        conditions = [self.due_at <= now]
        if self.condition is not None:
            conditions.append(self.condition)
        due = (
            select(table.id)
            .where(*conditions)
            .order_by(self.due_at, table.id)
            .limit(maximum)
            .with_for_update(skip_locked=True)
        )
        values: dict[str, Any] = {self.due_at.key: now + self.claim_lifetime}
        if self.attempts is not None:
            values[self.attempts.key] = self.attempts + 1
        return session.execute(
            build_bulk_update(table)
            # A CTE is used, because PostgreSQL could run a subquery for every row.
            .where(table.id.in_(due.cte("due").select()))
            .values(values)
            .returning(*returned)
        )
