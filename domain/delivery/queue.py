"""Parts that all delivery queues share: pauses between attempts, claims, results and states.

Each row of a queue has a column with the time of its next attempt. A worker claims a row by moving
this time into the future. If the worker is killed, the row becomes due again at that time, and
another worker claims it.

If one claim covers many messages, the rows of the queue are destinations with numbered claims
(`ExclusiveQueue`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from sqlalchemy import (
    ColumnElement,
    Result,
    Select,
    SQLColumnExpression,
    Update,
    and_,
    exists,
    func,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from domain.core.database.bulk_statements import build_bulk_update
from domain.core.due_time_sql import Moment
from models.base import NEVER, ClaimedRow

#: Number of doublings after which every pause has reached its maximum. It limits the exponent.
_MAX_DOUBLINGS = 32
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def is_set(moment: InstrumentedAttribute[Any]) -> ColumnElement[bool]:
    """Return the condition that a time is not NULL.

    The range lets SQLite use an index. It uses none for IS NOT NULL.
    """
    return moment.between(_EARLIEST, NEVER)


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Pauses between failed attempts, which double from the first pause to a maximum."""

    #: Pauses after the first failures, if they do not double yet.
    early: tuple[timedelta, ...] = ()
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
        requested a longer pause, that pause is returned, up to the longest pause. The longest early
        pause is the limit after early failures.
        """
        doublings = max(failures, 1) - len(self.early) - 1
        if doublings < 0:
            pause, longest = self.early[doublings], max(self.early)
        else:
            doubled = self.first * float(2 ** min(doublings, _MAX_DOUBLINGS))
            pause, longest = min(doubled, self.longest), self.longest
        varied = pause * (1 + self.jitter * (2 * share - 1))
        return max(varied, min(requested, longest * (1 + self.jitter)))


@dataclass(frozen=True, kw_only=True)
class QueueState:
    """The numbers of waiting items and failures of a queue, and the time of the oldest item."""

    waiting: int
    #: Time since which the oldest item waits, or None if no item is waiting.
    oldest_at: datetime | None
    #: Number of items or destinations whose last attempt failed.
    failing: int


@dataclass(frozen=True, kw_only=True)
class FailingDestination:
    """A destination whose last attempt failed, without its address and its secrets."""

    #: ID among the destinations of the queue.
    id: str
    name: str
    #: Details such as the owner of the destination, or an empty string.
    about: str = ""
    waiting: int
    attempts: int
    failing_since: datetime | None
    last_error: str | None = None
    #: Time of the next attempt. None if nothing is waiting, or if an attempt is due.
    next_attempt_at: datetime | None


def read_queue_state(
    *conditions: ColumnElement[bool],
    since: SQLColumnExpression[Any],
    has_failed: ColumnElement[bool],
    session: Session,
) -> QueueState:
    """Return the state of the queued rows that meet the conditions.

    `since` is the time since which a row waits, and `has_failed` selects rows that failed.
    """
    waiting, oldest_at, failing = session.execute(
        select(func.count(), func.min(since), func.count().filter(has_failed)).where(*conditions)
    ).one()
    return QueueState(waiting=waiting, oldest_at=oldest_at, failing=failing)


def _build_claim(table: Any, due: Select[int], values: Mapping[str, Any]) -> Update:
    """Return a statement that claims selected rows, and skips rows that another worker locked."""
    # A CTE is used, because PostgreSQL could run a subquery for every row.
    free = due.with_for_update(skip_locked=True).cte("due")
    return build_bulk_update(table).where(table.id.in_(free.select())).values(values)


@dataclass(frozen=True, kw_only=True)
class DeliveryQueue:
    """A table whose due rows workers claim one after the other, longest waiting first."""

    #: Column with the time of the next attempt. It is NULL if no attempt is due.
    due_at: InstrumentedAttribute[Any]
    #: Column with the number of attempts, which each claim increases, if there is one.
    attempts: InstrumentedAttribute[Any] | None = None
    #: Time for which a worker claims a row. It exceeds the duration of an attempt. Rows that stay
    #: locked until they are handled are not claimed (`lock_due_rows`).
    claim_lifetime: timedelta = timedelta(0)
    backoff: Backoff
    #: Condition that rows must also meet to be claimed, if any.
    condition: ColumnElement[bool] | None = None
    #: True if rows without a time of the next attempt are due.
    is_due_without_time: bool = False
    #: Columns with the subject of a row, if rows about the same subject are handled in order.
    subject: tuple[InstrumentedAttribute[Any], ...] = ()

    def build_due_condition(self, now: Moment) -> ColumnElement[bool]:
        """Return the condition for rows that a worker may claim."""
        due: ColumnElement[bool] = self.due_at <= now
        if self.is_due_without_time:
            due = or_(self.due_at.is_(None), due)
        return due if self.condition is None else and_(self.condition, due)

    def claim_due_rows(
        self, *returned: Any, maximum: int = 1, session: Session, now: datetime
    ) -> Result[Any]:
        """Claim up to `maximum` due rows, and return these columns of each claimed row.

        Rows that another worker has locked are skipped.
        """
        table: Any = self.due_at.class_
        due = select(table.id).where(self.build_due_condition(now))
        values: dict[str, Any] = {self.due_at.key: now + self.claim_lifetime}
        if self.attempts is not None:
            values[self.attempts.key] = self.attempts + 1
        claim = _build_claim(table, due.order_by(self.due_at, table.id).limit(maximum), values)
        return session.execute(claim.returning(*returned))

    def lock_due_rows(
        self, *conditions: ColumnElement[bool], maximum: int, session: Session, now: datetime
    ) -> Sequence[Any]:
        """Lock and return the due rows that meet the conditions, at most one for each subject.

        A row is returned only after all earlier rows of its subject have been handled. Rows that
        another worker has locked are skipped.
        """
        table: Any = self.due_at.class_
        earlier = aliased(table)
        waits = exists().where(
            *(getattr(earlier, each.key) == each for each in self.subject), earlier.id < table.id
        )
        due = select(table).where(*conditions, self.build_due_condition(now), ~waits)
        locked = due.order_by(table.id).limit(maximum).with_for_update(skip_locked=True, of=table)
        return session.scalars(locked).all()

    def schedule_retry(
        self, row_id: int, failures: int, /, *, session: Session, now: datetime, **values: Any
    ) -> None:
        """Schedule the next attempt after a number of consecutive failures, and store values."""
        table: Any = self.due_at.class_
        due_at = now + self.backoff.compute_pause(failures)
        row = build_bulk_update(table).where(table.id == row_id)
        session.execute(row.values({self.due_at.key: due_at, **values}))

    def build_waiting_condition(
        self, now: datetime, has_failed: ColumnElement[bool]
    ) -> ColumnElement[bool]:
        """Return the condition for rows that are due, are being processed or will be retried.

        Rows whose first attempt is in the future do not wait.
        """
        has_begun = has_failed if self.attempts is None else or_(self.attempts > 0, has_failed)
        waiting = and_(is_set(self.due_at), or_(self.due_at <= now, has_begun))
        return waiting if self.condition is None else and_(self.condition, waiting)

    def get_state(
        self,
        *,
        since: SQLColumnExpression[Any],
        has_failed: ColumnElement[bool],
        session: Session,
        now: datetime,
    ) -> QueueState:
        """Return the state of the queue, reading only queued rows."""
        waiting = self.build_waiting_condition(now, has_failed)
        return read_queue_state(waiting, since=since, has_failed=has_failed, session=session)

    def retry_now(
        self, *conditions: ColumnElement[bool], session: Session, now: datetime, **values: Any
    ) -> int:
        """Make the queued rows that meet the conditions due, and return their number.

        A row that is being processed may be processed twice, as after the end of a worker.
        """
        table: Any = self.due_at.class_
        more = () if self.condition is None else (self.condition,)
        retried = session.execute(
            build_bulk_update(table)
            .where(self.due_at > now, *more, *conditions)
            .values({self.due_at.key: now, **values})
            .returning(table.id)
        )
        return len(retried.all())


RowT = TypeVar("RowT", bound=ClaimedRow)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A worker's claim to a destination. Each new claim of the destination has a higher number."""

    destination_id: int
    number: int


@dataclass(frozen=True, kw_only=True)
class ExclusiveQueue(DeliveryQueue, Generic[RowT]):
    """Destinations with queued messages, each of which one worker at a time serves.

    A worker claims a destination for a limited time, and renews the claim before each message. The
    results of a worker that lost its claim do not change the destination.
    """

    row: type[RowT]

    def build_due_condition(self, now: Moment) -> ColumnElement[bool]:
        """Return the condition for destinations that a worker may claim."""
        is_free = or_(self.row.claimed_until.is_(None), self.row.claimed_until < now)
        return and_(super().build_due_condition(now), is_free)

    def claim_destinations(
        self, found: Select[int], *, session: Session, now: datetime
    ) -> Sequence[Claim]:
        """Claim the destinations that a query selects and that a worker may claim."""
        due = found.where(self.build_due_condition(now))
        values = {"claim": self.row.claim + 1, "claimed_until": now + self.claim_lifetime}
        claim = _build_claim(self.row, due, values)
        rows = session.execute(claim.returning(self.row.id, self.row.claim))
        return [Claim(destination_id=row_id, number=number) for row_id, number in rows]

    def build_claim_condition(self, claim: Claim) -> ColumnElement[bool]:
        """Return the condition for the destination of a claim that was not lost."""
        return and_(self.row.id == claim.destination_id, self.row.claim == claim.number)

    def lock_destination(self, claim: Claim, *, session: Session) -> RowT | None:
        """Lock and return a claimed destination, or return None if the claim was lost."""
        found = select(self.row).where(self.build_claim_condition(claim)).with_for_update()
        return session.scalar(found.execution_options(populate_existing=True))

    def renew_claim(self, row: RowT, *, now: datetime) -> None:
        """Extend the claim to a locked destination for the next attempt."""
        row.claimed_until = now + self.claim_lifetime

    def release_claim(self, claim: Claim, *, session: Session) -> None:
        """Release a claim, so that other workers need not wait until it expires."""
        released = build_bulk_update(self.row).where(self.build_claim_condition(claim))
        session.execute(released.values(claimed_until=None))

    def record_success(self, row: RowT) -> None:
        """Record that a locked destination accepted a message."""
        row.tries, row.failing_since, row.last_error = 0, None, None

    def record_failure(
        self, row: RowT, problem: str | None, *, pause: timedelta, now: datetime
    ) -> None:
        """Record a failed attempt at a locked destination, and release the claim.

        The next attempt follows after the pause.
        """
        row.tries += 1
        row.failing_since = row.failing_since or now
        row.last_failed_at, row.last_error = now, problem
        row.claimed_until = None
        setattr(row, self.due_at.key, now + pause)
