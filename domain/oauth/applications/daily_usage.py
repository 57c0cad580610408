"""Counts the API requests, tokens and rejected requests of an application by day (UTC)."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Select, literal, or_, select
from sqlalchemy.orm import Session

from models import AccessToken, CallCount, RejectedOAuthRequest

SHOWN_DAYS = 14
#: Maximum number of rows that are counted, which limits the cost for large applications.
MAX_COUNTED_ROWS = 50_000


class DailyUsage(NamedTuple):
    """The use of an application on each recent day, oldest day first."""

    days: tuple[date, ...]
    #: Number of API requests with a token of the application. Empty if too many rows would be
    #: counted.
    requests: Sequence[int]
    #: Number of these requests that failed with status 400 or above. Empty if `requests` is empty.
    errors: Sequence[int]
    #: Number of issued access tokens. Empty if too many rows would be counted.
    tokens: Sequence[int]
    #: Number of rejected requests. For each reason, only the newest requests are stored, with the
    #: number of similar requests that were not stored.
    rejections: Sequence[int]


def find_daily_usage(application_id: int, *, session: Session, today: date) -> DailyUsage:
    """Return the use of an application on each of the last SHOWN_DAYS days, including today."""
    days = tuple(today - timedelta(days=offset) for offset in reversed(range(SHOWN_DAYS)))
    first = datetime.combine(days[0], time(), UTC)
    of_application = (CallCount.application_id == application_id, CallCount.day >= days[0])
    calls = select(CallCount.day, CallCount.count).where(*of_application)
    errors = select(CallCount.day, CallCount.errors).where(*of_application)
    tokens = select(AccessToken.created_at, literal(1)).where(
        AccessToken.application_id == application_id,
        AccessToken.created_at >= first,
        # This condition only limits the part of the index that is read.
        or_(AccessToken.revoked_at.is_(None), AccessToken.revoked_at >= first),
    )
    rejections = select(RejectedOAuthRequest.refused_at, RejectedOAuthRequest.skipped + 1).where(
        RejectedOAuthRequest.application_id == application_id,
        RejectedOAuthRequest.refused_at >= first,
    )

    def count(found: Select[*tuple[Any, ...]]) -> list[int]:
        rows = session.execute(found.limit(MAX_COUNTED_ROWS)).all()
        counts = Counter[date]()
        for at, number in rows:
            counts[at.date() if isinstance(at, datetime) else at] += number
        return [counts[day] for day in days] if len(rows) < MAX_COUNTED_ROWS else []

    return DailyUsage(days, count(calls), count(errors), count(tokens), count(rejections))
