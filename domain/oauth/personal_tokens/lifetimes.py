"""Lifetimes of personal, project and group access tokens.

Before release 16.0, a token without a requested expiry never expires. From release 16.0, such a
token expires after a year. Existing tokens without an expiry are assigned an expiry date, which is
one year in the future. Administrators can set a maximum lifetime under a year, which applies in
every release. Assigned expiry dates are never removed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from domain.audit.events import Event, EventKind, EventSource, NamespaceIds, store_event
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import InvalidError
from models import Bot, PersonalAccessToken
from models.base import NEVER

ONE_YEAR = timedelta(days=365)
#: Number of tokens that are assigned an expiry in one transaction.
_BATCH_SIZE = 500


@dataclass(frozen=True, kw_only=True)
class TokenLifetimes:
    """The maximum and default token lifetimes that the settings permit."""

    longest: timedelta
    #: Lifetime of a token without a requested expiry; None if it never expires.
    usual: timedelta | None

    @classmethod
    def from_max_lifetime(cls, max_lifetime: timedelta, *, may_never_end: bool) -> "TokenLifetimes":
        """Return the lifetimes for a maximum lifetime.

        Tokens never expire by default if `may_never_end` is True and the maximum is a year or more.
        """
        is_endless = may_never_end and max_lifetime >= ONE_YEAR
        return cls(longest=max_lifetime, usual=None if is_endless else min(max_lifetime, ONE_YEAR))

    def get_latest_expiry_day(self, now: datetime) -> date:
        """Return the latest expiry date that can be requested."""
        return now.astimezone(UTC).date() + self.longest

    def get_default_expiry_day(self, now: datetime) -> date | None:
        """Return the default expiry date, or None for tokens that never expire."""
        return None if self.usual is None else now.astimezone(UTC).date() + self.usual

    def compute_expiry(self, day: date | None, *, now: datetime) -> datetime | None:
        """Return the expiry time for a day (00:00 UTC), or the default expiry if `day` is None.

        Raise InvalidError if the day is not in the future, or exceeds the maximum lifetime.
        """
        chosen = self.get_default_expiry_day(now) if day is None else day
        if chosen is None:
            return None
        today, last = now.astimezone(UTC).date(), self.get_latest_expiry_day(now)
        if not today < chosen <= last:
            message = f"The expiry date must be from {today + timedelta(days=1)} to {last}."
            raise InvalidError(message, field="expires_at")
        return datetime.combine(chosen, time(), tzinfo=UTC)

    def compute_renewed_expiry(
        self, created_at: datetime, expires_at: datetime | None, *, now: datetime
    ) -> datetime | None:
        """Return the expiry of a rotated token, which is valid for as many days as before."""
        if expires_at is None:
            return self.compute_expiry(None, now=now)
        days = timedelta(days=(expires_at.date() - created_at.date()).days)
        lifetime = min(max(days, timedelta(days=1)), self.longest)
        return self.compute_expiry(now.astimezone(UTC).date() + lifetime, now=now)


def count_tokens_without_expiry(*, session: Session) -> int:
    """Return the number of tokens that never expire."""
    return (
        session.scalar(
            select(func.count(PersonalAccessToken.id)).where(_build_no_expiry_condition())
        )
        or 0
    )


def assign_expiry_to_tokens(
    lifetimes: TokenLifetimes, *, session: Session, now: datetime, commit_batch: Callable[[], None]
) -> int:
    """Assign the default expiry to tokens without an expiry, and return the number of tokens.

    An audit event is recorded for each token. `commit_batch` is called after each batch, and must
    commit. Do nothing while tokens without an expiry are permitted.
    """
    ended = 0
    while found := assign_expiry_to_token_batch(lifetimes, session=session, now=now):
        commit_batch()
        ended += found
    return ended


def assign_expiry_to_token_batch(
    lifetimes: TokenLifetimes, *, session: Session, now: datetime
) -> int:
    """Assign the default expiry to one batch of tokens, and return the number of changed tokens."""
    until = lifetimes.compute_expiry(None, now=now)
    if until is None:
        return 0
    token = PersonalAccessToken
    rows = session.execute(
        select(token.id, token.user_id, token.name, Bot.project_id, Bot.group_id)
        .outerjoin(Bot, Bot.user_id == token.user_id)
        .where(_build_no_expiry_condition())
        .order_by(token.id)
        .limit(_BATCH_SIZE)
        .with_for_update(of=token, skip_locked=True)
    ).all()
    session.execute(
        build_bulk_update(token)
        .where(token.id.in_([row.id for row in rows]))
        .values(expires_at=until)
    )
    for row in rows:
        event = Event(
            kind=EventKind.TOKEN_EXPIRY_SET,
            user_id=row.user_id,
            subject=row.name,
            details={"token_id": row.id, "expires_at": until.date().isoformat()},
            place=NamespaceIds(project_id=row.project_id, group_id=row.group_id),
        )
        store_event(event, EventSource(), session=session, now=now)
    return len(rows)


def _build_no_expiry_condition() -> ColumnElement[bool]:
    return (PersonalAccessToken.expires_at == NEVER) & PersonalAccessToken.revoked_at.is_(None)
