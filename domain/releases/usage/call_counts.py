"""Counts calls in memory by consumer and shape, and stores a row per day, consumer and shape.

Counts contain neither parameter values nor tokens. Counting a call never blocks, and takes about a
microsecond. `web/releases/usage_recording.py` stores the counts periodically.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import case, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.core.database.rows import insert_into
from models import Application, CallCount, CallShape, PersonalAccessToken, User

#: Maximum number of shapes per consumer until the next flush. Further shapes lose their parameter
#: names.
MAX_SHAPES_PER_CONSUMER = 100
#: Maximum number of counts until the next flush. Calls with further shapes are not counted.
MAX_COUNTS = 5_000
#: Placeholder for parameter names that neither an operation nor the schedule defines.
UNKNOWN_NAME = "…"
#: Maximum number of shapes per consumer and day. Further shapes lose their parameter names.
MAX_SHAPES_PER_DAY = 500
#: Maximum number of shapes of all consumers. Further shapes lose their parameter names.
MAX_TOTAL_SHAPES = 10_000
#: Number of shapes that each user can have even if MAX_TOTAL_SHAPES is reached, so that one user
#: cannot use up all shapes.
GUARANTEED_SHAPES_PER_USER = 100


class Consumer(NamedTuple):
    """The caller, identified by its token or application and not by its IP address."""

    user_id: int | None
    #: client_id of an OAuth application.
    application_uid: str | None
    #: Id of a personal, project or group access token.
    personal_token_id: int | None


#: Consumer of calls without a token.
ANONYMOUS_CONSUMER = Consumer(None, None, None)


class UsageShape(NamedTuple):
    """The properties that calls of the same shape share."""

    method: str
    #: Path with `:name` for each variable.
    route: str
    #: Sorted names of parameters.
    parameters: tuple[str, ...]
    #: Ids of scheduled changes that affect the call because of its parameter values.
    changes: tuple[str, ...]

    @property
    def without_names(self) -> "UsageShape":
        """The shape with a placeholder instead of its parameter names."""
        return self._replace(parameters=(UNKNOWN_NAME,))


@dataclass(slots=True)
class CallTotals:
    """The number of calls and errors, the times of calls, and the last IP address."""

    calls: int
    first_at: datetime
    last_at: datetime
    #: IP address of the last call.
    last_address: str | None
    #: Number of calls that failed with status 400 or above.
    errors: int = 0

    def add_calls(self, call_totals: "CallTotals") -> None:
        """Add calls of the same shape and consumer, which may be earlier or later."""
        self.calls += call_totals.calls
        self.errors += call_totals.errors
        self.first_at = min(self.first_at, call_totals.first_at)
        if call_totals.last_at >= self.last_at:
            self.last_at, self.last_address = call_totals.last_at, call_totals.last_address


@dataclass(frozen=True, slots=True)
class CountedCalls:
    """The calls of one shape by a consumer."""

    consumer: Consumer
    shape: UsageShape
    count: CallTotals


class CallCounter:
    """The counter of calls in a process.

    The counter needs no lock, since greenlets switch only when they wait, and counting never waits.
    """

    def __init__(self) -> None:
        """Initialize the counter without calls."""
        self._counts: dict[Consumer, dict[UsageShape, CallTotals]] = {}
        self._size = 0
        self._dropped = 0

    def count_call(
        self, consumer: Consumer, shape: UsageShape, *, address: str | None, now: datetime
    ) -> None:
        """Count a call."""
        own = self._counts.get(consumer)
        found = own.get(shape) if own is not None else None
        if found is None:
            self._add_count(consumer, shape, CallTotals(1, now, now, address))
            return
        found.calls += 1
        found.last_at = now
        found.last_address = address

    def take_counts(self) -> tuple[list[CountedCalls], int]:
        """Return the counts and the number of calls that were not counted, and reset both."""
        taken, dropped = self._counts, self._dropped
        self._counts, self._size, self._dropped = {}, 0, 0
        calls = [
            CountedCalls(consumer, shape, count)
            for consumer, shapes in taken.items()
            for shape, count in shapes.items()
        ]
        return calls, dropped

    def add_counts(self, calls: Iterable[CountedCalls]) -> None:
        """Add counts, such as counts that could not be stored, as far as space allows."""
        for each in calls:
            self._add_count(each.consumer, each.shape, each.count)

    def _add_count(self, consumer: Consumer, shape: UsageShape, count: CallTotals) -> None:
        own = self._counts.setdefault(consumer, {})
        if shape not in own and len(own) >= MAX_SHAPES_PER_CONSUMER:
            shape = shape.without_names
        if shape in own:
            own[shape].add_calls(count)
        elif self._size >= MAX_COUNTS:
            self._dropped += count.calls
        else:
            own[shape] = count
            self._size += 1


class _ConsumerIds(NamedTuple):
    """The ids of a consumer in the database."""

    user_id: int | None
    application_id: int | None
    personal_token_id: int | None


@dataclass(frozen=True, kw_only=True)
class _CountRow:
    consumer: _ConsumerIds
    day: date
    shape: UsageShape
    count: CallTotals

    @cached_property
    def shape_digest(self) -> bytes:
        return _compute_digest(*_format_shape(self.shape))

    @cached_property
    def digest(self) -> bytes:
        return _compute_digest(
            self.day.isoformat(), *map(str, self.consumer), *_format_shape(self.shape)
        )


def store_call_counts(calls: Sequence[CountedCalls], *, session: Session) -> None:
    """Add counts to the rows for their days; omit the calls of deleted consumers."""
    rows = _limit_total_shapes(list(_build_rows(calls, session)), session)
    rows = _merge_rows(_limit_daily_shapes(rows, session))
    if not rows:
        return
    shape_ids = _store_shapes(rows, session)
    values = [
        {
            "digest": row.digest,
            "day": row.day,
            "shape_id": shape_ids[row.shape_digest],
            **row.consumer._asdict(),
            "count": row.count.calls,
            "errors": row.count.errors,
            "first_at": row.count.first_at,
            "last_at": row.count.last_at,
            "last_address": row.count.last_address,
        }
        # The fixed order prevents deadlocks between processes.
        for row in sorted(rows, key=lambda each: each.digest)
    ]
    insert = insert_into(CallCount, session=session).values(values)
    new = insert.excluded
    is_later = new.last_at >= CallCount.last_at
    session.execute(
        insert.on_conflict_do_update(
            index_elements=[CallCount.digest],
            set_={
                "count": CallCount.count + new["count"],
                "errors": CallCount.errors + new.errors,
                "first_at": case(
                    (new.first_at < CallCount.first_at, new.first_at), else_=CallCount.first_at
                ),
                "last_at": case((is_later, new.last_at), else_=CallCount.last_at),
                "last_address": case((is_later, new.last_address), else_=CallCount.last_address),
            },
        )
    )


def _build_rows(calls: Sequence[CountedCalls], session: Session) -> Iterator[_CountRow]:
    """Yield the rows of calls whose consumers still exist."""
    users = _find_existing_ids(User.id, (each.consumer.user_id for each in calls), session)
    tokens = _find_existing_ids(
        PersonalAccessToken.id, (each.consumer.personal_token_id for each in calls), session
    )
    applications = _find_application_ids(calls, session)
    for each in calls:
        consumer = each.consumer
        application_id = applications.get(consumer.application_uid or "")
        is_gone = (
            consumer.user_id not in users
            or consumer.personal_token_id not in tokens
            or (consumer.application_uid is not None and application_id is None)
        )
        if not is_gone:
            ids = _ConsumerIds(consumer.user_id, application_id, consumer.personal_token_id)
            yield _CountRow(
                consumer=ids, day=each.count.last_at.date(), shape=each.shape, count=each.count
            )


def _find_existing_ids(
    key: InstrumentedAttribute[int], ids: Iterable[int | None], session: Session
) -> set[int | None]:
    """Return the ids that exist in the table, and None."""
    wanted = {each for each in ids if each is not None}
    found: set[int | None] = {None}
    return found.union(session.scalars(select(key).where(key.in_(wanted)))) if wanted else found


def _find_application_ids(calls: Sequence[CountedCalls], session: Session) -> dict[str, int]:
    wanted = {each.consumer.application_uid for each in calls} - {None}
    if not wanted:
        return {}
    rows = session.execute(
        select(Application.uid, Application.id).where(Application.uid.in_(wanted))
    )
    return {row.uid: row.id for row in rows}


def _limit_total_shapes(rows: Sequence[_CountRow], session: Session) -> Sequence[_CountRow]:
    """Remove the parameter names from new shapes if there are too many shapes in total.

    The shapes of all tokens of a user are counted together.
    """
    digests = {row.shape_digest for row in rows}
    known = set(session.scalars(select(CallShape.digest).where(CallShape.digest.in_(digests))))
    if known == digests:
        return rows
    number = session.scalar(select(func.count(CallShape.id))) or 0
    if number + len(digests - known) <= MAX_TOTAL_SHAPES:
        return rows
    numbers = _count_shapes_by_user({row.consumer.user_id for row in rows}, session)
    bounded = []
    for row in rows:
        if row.shape_digest not in known:
            user_id = row.consumer.user_id
            if numbers[user_id] >= GUARANTEED_SHAPES_PER_USER:
                bounded.append(replace(row, shape=row.shape.without_names))
                continue
            known.add(row.shape_digest)
            numbers[user_id] += 1
        bounded.append(row)
    return bounded


def _count_shapes_by_user(user_ids: set[int | None], session: Session) -> Counter[int | None]:
    """Return the number of shapes by user id; None stands for anonymous calls."""
    counted_rows = session.execute(
        select(CallCount.user_id, func.count(CallCount.shape_id.distinct()))
        .where(or_(CallCount.user_id.in_(user_ids - {None}), CallCount.user_id.is_(None)))
        .group_by(CallCount.user_id)
    )
    return Counter({row[0]: row[1] for row in counted_rows})


def _limit_daily_shapes(rows: Sequence[_CountRow], session: Session) -> Sequence[_CountRow]:
    """Remove the parameter names from new shapes of consumers with too many shapes on a day."""
    digests = [row.digest for row in rows]
    known = set(session.scalars(select(CallCount.digest).where(CallCount.digest.in_(digests))))
    if known.issuperset(digests):
        return rows
    numbers = _count_shapes_by_day(rows, session)
    bounded = []
    for row in rows:
        if row.digest not in known:
            numbers[row.consumer, row.day] += 1
            if numbers[row.consumer, row.day] > MAX_SHAPES_PER_DAY:
                bounded.append(replace(row, shape=row.shape.without_names))
                continue
        bounded.append(row)
    return bounded


def _count_shapes_by_day(
    rows: Sequence[_CountRow], session: Session
) -> Counter[tuple[_ConsumerIds, date]]:
    consumer = (CallCount.user_id, CallCount.application_id, CallCount.personal_token_id)
    users = {row.consumer.user_id for row in rows}
    counted_rows = session.execute(
        select(*consumer, CallCount.day, func.count())
        .where(CallCount.day.in_({row.day for row in rows}))
        .where(or_(CallCount.user_id.in_(users - {None}), CallCount.user_id.is_(None)))
        .group_by(*consumer, CallCount.day)
    )
    return Counter({(_ConsumerIds(*row[:3]), row[3]): row[4] for row in counted_rows})


def _merge_rows(rows: Sequence[_CountRow]) -> Sequence[_CountRow]:
    """Merge rows whose shapes became equal when parameter names were removed."""
    found: dict[bytes, _CountRow] = {}
    for row in rows:
        if row.digest in found:
            found[row.digest].count.add_calls(row.count)
        else:
            found[row.digest] = replace(row, count=replace(row.count))
    return list(found.values())


def _store_shapes(rows: Sequence[_CountRow], session: Session) -> dict[bytes, int]:
    """Store new shapes, and return the ids of all shapes by digest."""
    shapes = {row.shape_digest: _format_shape(row.shape) for row in rows}
    names = ("method", "route", "parameters", "changes")
    values: list[dict[str, Any]] = [
        {"digest": digest, **dict(zip(names, texts, strict=True))}
        for digest, texts in sorted(shapes.items())
    ]
    insert = insert_into(CallShape, session=session).values(values)
    session.execute(insert.on_conflict_do_nothing(index_elements=[CallShape.digest]))
    stored = session.execute(
        select(CallShape.digest, CallShape.id).where(CallShape.digest.in_(shapes))
    )
    return {row.digest: row.id for row in stored}


def _format_shape(shape: UsageShape) -> tuple[str, str, str, str]:
    return shape.method, shape.route, " ".join(shape.parameters), " ".join(shape.changes)


def _compute_digest(*texts: str) -> bytes:
    return sha256("\n".join(texts).encode()).digest()
