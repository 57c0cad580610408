"""Removes memberships that have ended. They gave nothing since their day: this tidies up."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from domain.audit.events import Event, EventKind, EventSource, store_event
from models import Group, Member, Project, User

_SLICE = 200


def remove_ended(*, session: Session, now: datetime, between: Callable[[], None]) -> int:
    """Remove memberships that have ended, each with an audit event, and return how many."""
    path = func.coalesce(Group.path, Project.path).label("path")
    ended = (
        select(Member.id, Member.user_id, User.username, path)
        .join(User, User.id == Member.user_id)
        .outerjoin(Group, Group.id == Member.group_id)
        .outerjoin(Project, Project.id == Member.project_id)
        .where(Member.expires_at <= now.date())
        .limit(_SLICE)
        .with_for_update(of=Member, skip_locked=True)
    )
    removed = 0
    while rows := session.execute(ended).all():
        for row in rows:
            event = Event(
                kind=EventKind.MEMBER_EXPIRED,
                user_id=row.user_id,
                subject=row.path,
                details={"username": row.username},
            )
            store_event(event, EventSource(), session=session, now=now)
        session.execute(
            delete(Member)
            .where(Member.id.in_([row.id for row in rows]))
            .execution_options(synchronize_session=False)
        )
        between()
        removed += len(rows)
    return removed
