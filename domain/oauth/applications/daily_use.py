"""Counts the API requests, tokens and rejected requests of an application by day (UTC)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from models import AccessToken, CallCount, TokenRefusal

SHOWN_DAYS = 14
#: Maximum number of rows that a count reads, so that its cost does not grow with the application.
MAX_COUNTED_ROWS = 50_000


@dataclass(frozen=True, kw_only=True)
class DailyUse:
    """The use of an application on each of the last days, oldest day first."""

    days: tuple[date, ...]
    #: API requests with a token of the application. None if there are too many rows to count.
    requests: Sequence[int] | None
    #: Issued access tokens. None as above.
    tokens: Sequence[int] | None
    #: Stored rejected requests. Only the newest requests with each reason are stored, together with
    #: the number of similar requests.
    rejections: Sequence[int]


def find_daily_use(application_id: int, *, session: Session, today: date) -> DailyUse:
    """Return the use of an application on the last days, including today."""
    days = tuple(today - timedelta(days=offset) for offset in range(SHOWN_DAYS))[::-1]
    first = datetime.combine(days[0], time(), UTC)
    calls = select(CallCount.day, CallCount.count).where(
        CallCount.application_id == application_id, CallCount.day >= days[0]
    )
    some = calls.limit(MAX_COUNTED_ROWS).subquery().c
    requests = session.execute(
        select(some.day, func.sum(some.count), func.count()).group_by(some.day)
    ).all()
    tokens = session.scalars(
        select(AccessToken.created_at)
        .where(
            AccessToken.application_id == application_id,
            AccessToken.created_at >= first,
            # This condition only limits the part of the index that is read.
            or_(AccessToken.revoked_at.is_(None), AccessToken.revoked_at >= first),
        )
        .limit(MAX_COUNTED_ROWS)
    ).all()
    rejections = session.execute(
        select(TokenRefusal.refused_at, TokenRefusal.skipped + 1).where(
            TokenRefusal.application_id == application_id, TokenRefusal.refused_at >= first
        )
    ).all()

    def count(pairs: Iterable[tuple[date, int]]) -> list[int]:
        counts = Counter[date]()
        for day, number in pairs:
            counts[day] += number
        return [counts[day] for day in days]

    return DailyUse(
        days=days,
        requests=count((row[0], int(row[1])) for row in requests)
        if sum(row[2] for row in requests) < MAX_COUNTED_ROWS
        else None,
        tokens=count((at.date(), 1) for at in tokens) if len(tokens) < MAX_COUNTED_ROWS else None,
        rejections=count((at.date(), number) for at, number in rejections),
    )
