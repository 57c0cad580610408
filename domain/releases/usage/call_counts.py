"""Counts API calls in memory by consumer and call signature, and stores daily totals.

The signature of a call consists of its method, route and parameter names, and of the changes that
affect the call because of its parameter values. Counts contain neither parameter values nor tokens.
Counting a call never blocks, and takes about a microsecond. `web/releases/usage_recording.py`
stores the counts periodically.
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

from domain.core.database.bulk_statements import build_session_insert
from models import Application, CallCount, CallSignature, PersonalAccessToken, User

#: Maximum number of shapes per consumer until the next flush. Further shapes lose their parameter
#: names.
MAX_SHAPES_PER_CONSUMER = 100
#: Maximum number of counts until the next flush. Calls with further shapes are not counted.
MAX_COUNTS = 5_000
#: Placeholder for parameter names that neither an operation nor the schedule defines.
UNKNOWN_NAME = "…"
#: Maximum number of call shapes (a method, a path and the names of parameters) per consumer and
#: day. Further shapes are stored without the names.
MAX_SHAPES_PER_DAY = 500
#: Maximum number of call shapes across all consumers. Further shapes are stored without the names.
MAX_TOTAL_SHAPES = 10_000
#: Number of shapes that each user can have even if MAX_TOTAL_SHAPES is reached, so that one user
#: cannot use up all shapes.
GUARANTEED_SHAPES_PER_USER = 100


class Consumer(NamedTuple):
    """The caller of the API, identified by user, application or token, but not by IP address."""

    user_id: int | None
    #: client_id of an OAuth application.
    application_uid: str | None
    #: ID of a personal, project or group access token.
    personal_token_id: int | None


#: Consumer of calls without a token.
ANONYMOUS_CONSUMER = Consumer(None, None, None)


class UsageSignature(NamedTuple):
    """The signature of calls that are counted together, such as their method and route."""

    method: str
    #: Path with `:name` for each variable.
    route: str
    #: Sorted names of parameters.
    parameters: tuple[str, ...]
    #: IDs of scheduled changes that affect the call because of its parameter values.
    changes: tuple[str, ...]

    @property
    def without_parameter_names(self) -> "UsageSignature":
        """A copy of the signature with a placeholder in place of the parameter names."""
        return self._replace(parameters=(UNKNOWN_NAME,))


@dataclass(slots=True)
class CallTotals:
    """The number of calls and errors, the first and last call times, and the last IP address."""

    calls: int
    first_at: datetime
    last_at: datetime
    #: IP address of the last call.
    last_address: str | None
    #: Number of calls that failed with status 400 or above.
    errors: int = 0

    def add_calls(self, call_totals: "CallTotals") -> None:
        """Add the totals of other calls, which may be earlier or later."""
        self.calls += call_totals.calls
        self.errors += call_totals.errors
        self.first_at = min(self.first_at, call_totals.first_at)
        if call_totals.last_at >= self.last_at:
            self.last_at, self.last_address = call_totals.last_at, call_totals.last_address


@dataclass(frozen=True, slots=True)
class CountedCalls:
    """The call totals of a consumer for one call signature."""

    consumer: Consumer
    shape: UsageSignature
    count: CallTotals


class CallCounter:
    """The counter of calls in a process.

    The counter needs no lock, since greenlets switch only when they wait, and counting never waits.
    """

    def __init__(self) -> None:
        """Initialize an empty counter."""
        self._counts: dict[Consumer, dict[UsageSignature, CallTotals]] = {}
        self._size = 0
        self._dropped = 0

    def count_call(
        self, consumer: Consumer, shape: UsageSignature, *, address: str | None, now: datetime
    ) -> None:
        """Add a call to the totals for its consumer and signature."""
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
        """Add counts, for example counts that could not be stored.

        If the maximum number of counts is exceeded, the calls are dropped.
        """
        for each in calls:
            self._add_count(each.consumer, each.shape, each.count)

    def _add_count(self, consumer: Consumer, shape: UsageSignature, count: CallTotals) -> None:
        own = self._counts.setdefault(consumer, {})
        if shape not in own and len(own) >= MAX_SHAPES_PER_CONSUMER:
            shape = shape.without_parameter_names
        if shape in own:
            own[shape].add_calls(count)
        elif self._size >= MAX_COUNTS:
            self._dropped += count.calls
        else:
            own[shape] = count
            self._size += 1


class _ConsumerIds(NamedTuple):
    """The database IDs of the user, application and token that identify a consumer."""

    user_id: int | None
    application_id: int | None
    personal_token_id: int | None


@dataclass(frozen=True, kw_only=True)
class _CountRow:
    consumer: _ConsumerIds
    day: date
    shape: UsageSignature
    count: CallTotals

    @cached_property
    def signature_digest(self) -> bytes:
        return _compute_digest(*_serialize_signature(self.shape))

    @cached_property
    def digest(self) -> bytes:
        return _compute_digest(
            self.day.isoformat(), *map(str, self.consumer), *_serialize_signature(self.shape)
        )


def store_call_counts(calls: Sequence[CountedCalls], *, session: Session) -> None:
    """Add counts to the stored daily totals, except counts of deleted consumers."""
    rows = _limit_total_signatures(list(_build_rows(calls, session)), session)
    rows = _merge_rows(_limit_daily_signatures(rows, session))
    if not rows:
        return
    shape_ids = _store_signatures(rows, session)
    values = [
        {
            "digest": row.digest,
            "day": row.day,
            "shape_id": shape_ids[row.signature_digest],
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
    insert = build_session_insert(CallCount, session=session).values(values)
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
    """Return the given IDs that exist in the table, plus None."""
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


def _limit_total_signatures(rows: Sequence[_CountRow], session: Session) -> Sequence[_CountRow]:
    """Remove the parameter names from new signatures if there are too many signatures in total.

    The signatures of all tokens of a user are counted together.
    """
    digests = {row.signature_digest for row in rows}
    known = set(
        session.scalars(select(CallSignature.digest).where(CallSignature.digest.in_(digests)))
    )
    if known == digests:
        return rows
    number = session.scalar(select(func.count(CallSignature.id))) or 0
    if number + len(digests - known) <= MAX_TOTAL_SHAPES:
        return rows
    numbers = _count_signatures_by_user({row.consumer.user_id for row in rows}, session)
    bounded = []
    for row in rows:
        if row.signature_digest not in known:
            user_id = row.consumer.user_id
            if numbers[user_id] >= GUARANTEED_SHAPES_PER_USER:
                bounded.append(replace(row, shape=row.shape.without_parameter_names))
                continue
            known.add(row.signature_digest)
            numbers[user_id] += 1
        bounded.append(row)
    return bounded


def _count_signatures_by_user(user_ids: set[int | None], session: Session) -> Counter[int | None]:
    """Return the number of call signatures by user ID.

    The key is None for anonymous calls.
    """
    counted_rows = session.execute(
        select(CallCount.user_id, func.count(CallCount.shape_id.distinct()))
        .where(or_(CallCount.user_id.in_(user_ids - {None}), CallCount.user_id.is_(None)))
        .group_by(CallCount.user_id)
    )
    return Counter({row[0]: row[1] for row in counted_rows})


def _limit_daily_signatures(rows: Sequence[_CountRow], session: Session) -> Sequence[_CountRow]:
    """Remove parameter names from new signatures of consumers with too many signatures on a day."""
    digests = [row.digest for row in rows]
    known = set(session.scalars(select(CallCount.digest).where(CallCount.digest.in_(digests))))
    if known.issuperset(digests):
        return rows
    numbers = _count_signatures_by_day(rows, session)
    bounded = []
    for row in rows:
        if row.digest not in known:
            numbers[row.consumer, row.day] += 1
            if numbers[row.consumer, row.day] > MAX_SHAPES_PER_DAY:
                bounded.append(replace(row, shape=row.shape.without_parameter_names))
                continue
        bounded.append(row)
    return bounded


def _count_signatures_by_day(
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
    """Merge rows whose signatures became equal when parameter names were removed."""
    found: dict[bytes, _CountRow] = {}
    for row in rows:
        if row.digest in found:
            found[row.digest].count.add_calls(row.count)
        else:
            found[row.digest] = replace(row, count=replace(row.count))
    return list(found.values())


def _store_signatures(rows: Sequence[_CountRow], session: Session) -> dict[bytes, int]:
    """Store new call signatures, and return the IDs of all signatures by digest."""
    shapes = {row.signature_digest: _serialize_signature(row.shape) for row in rows}
    names = ("method", "route", "parameters", "changes")
    values: list[dict[str, Any]] = [
        {"digest": digest, **dict(zip(names, texts, strict=True))}
        for digest, texts in sorted(shapes.items())
    ]
    insert = build_session_insert(CallSignature, session=session).values(values)
    session.execute(insert.on_conflict_do_nothing(index_elements=[CallSignature.digest]))
    stored = session.execute(
        select(CallSignature.digest, CallSignature.id).where(CallSignature.digest.in_(shapes))
    )
    return {row.digest: row.id for row in stored}


def _serialize_signature(shape: UsageSignature) -> tuple[str, str, str, str]:
    return shape.method, shape.route, " ".join(shape.parameters), " ".join(shape.changes)


def _compute_digest(*texts: str) -> bytes:
    return sha256("\n".join(texts).encode()).digest()
