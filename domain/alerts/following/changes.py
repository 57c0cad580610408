"""Hands the changes of alerts to those who follow them, in order for each alert.

A trigger stores a change in the transaction that makes it (migration 0032), so none is lost. It is
deleted in the transaction that handles it, so none is handled twice. Two workers share the work:
each locks the changes that it takes, and the other skips them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from domain.alerts.following.followers import Follower
from models import AlertChange

#: The pause after the first failure; each further one is twice as long, up to the longest.
_FIRST_PAUSE = timedelta(seconds=2)
_LONGEST_PAUSE = timedelta(minutes=5)
_LONGEST_ERROR = 500


class ChangeKind(StrEnum):
    """What happened to an alert."""

    OPENED = "opened"
    ACKNOWLEDGED = "acknowledged"
    IGNORED = "ignored"
    RESOLVED = "resolved"
    #: Its status is triggered again.
    REOPENED = "reopened"
    #: A further report made it more urgent.
    RAISED = "raised"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of an alert that one follower has to handle; the alert may be deleted since."""

    id: int
    project_id: int
    alert_id: int
    kind: ChangeKind
    #: By the clock of the database.
    created_at: datetime
    #: Failed attempts.
    tries: int


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """What waits for a follower."""

    follower: Follower
    changes: int
    oldest: datetime
    failing: int


def has_due_changes(*, session: Session, now: datetime) -> bool:
    """Return whether a change waits to be handled; it writes nothing."""
    return session.scalar(select(AlertChange.id).where(_is_due(now)).limit(1)) is not None


def take_changes(
    follower: Follower, *, session: Session, now: datetime, limit: int
) -> Sequence[Change]:
    """Lock and return changes in order, at most one of each alert.

    A change is not returned before all earlier ones of its alert are handled.
    """
    earlier = aliased(AlertChange)
    waits = exists().where(
        earlier.follower == AlertChange.follower,
        earlier.alert_id == AlertChange.alert_id,
        earlier.id < AlertChange.id,
    )
    rows = session.scalars(
        select(AlertChange)
        .where(AlertChange.follower == follower.value, _is_due(now), ~waits)
        .order_by(AlertChange.id)
        .limit(limit)
        .with_for_update(skip_locked=True, of=AlertChange)
    ).all()
    return [
        Change(
            id=row.id,
            project_id=row.project_id,
            alert_id=row.alert_id,
            kind=ChangeKind(row.kind),
            created_at=row.created_at,
            tries=row.tries,
        )
        for row in rows
    ]


def _is_due(now: datetime) -> ColumnElement[bool]:
    return or_(AlertChange.next_try_at.is_(None), AlertChange.next_try_at <= now)


def finish(changes: Sequence[Change], *, session: Session) -> None:
    """Forget changes that were handled."""
    ids = [change.id for change in changes]
    session.execute(
        delete(AlertChange)
        .where(AlertChange.id.in_(ids))
        .execution_options(synchronize_session=False)
    )


def postpone(change: Change, reason: str, *, session: Session, now: datetime) -> datetime:
    """Note that a change could not be handled; return when it is tried again."""
    next_try_at: datetime = now + min(_FIRST_PAUSE * 2 ** min(change.tries, 10), _LONGEST_PAUSE)
    session.execute(
        update(AlertChange)
        .where(AlertChange.id == change.id)
        .values(
            tries=AlertChange.tries + 1, next_try_at=next_try_at, last_error=reason[:_LONGEST_ERROR]
        )
        .execution_options(synchronize_session=False)
    )
    return next_try_at


def backlogs(*, session: Session) -> Sequence[Backlog]:
    """Return what waits for each follower that is behind."""
    rows = session.execute(
        select(
            AlertChange.follower,
            func.count(),
            func.min(AlertChange.created_at),
            func.count(AlertChange.last_error),
        ).group_by(AlertChange.follower)
    )
    return [
        Backlog(follower=Follower(follower), changes=changes, oldest=oldest, failing=failing)
        for follower, changes, oldest, failing in rows
    ]
