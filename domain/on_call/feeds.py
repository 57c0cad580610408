"""Secret addresses under which users subscribe to the calendar of a schedule.

Only the digest of the token in an address is stored. It opens the calendar while its owner may see
the schedule.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Select, delete, select, update
from sqlalchemy.orm import Session

from domain.access.abilities import Ability
from domain.access.checks import check_feature
from domain.access.features import Feature
from domain.access.roles import Role
from domain.accounts.users import ACTIVE
from domain.errors import DomainError, NotFoundError
from domain.keyring import CredentialType, Keyring
from domain.on_call.schedules import ScheduleView, get_schedule
from domain.projects.access import get_project_for
from domain.projects.views import ProjectView, Viewer
from models import OnCallFeed, OnCallSchedule, Project, User

#: How often the last use is noted: calendars ask every few minutes.
_NOTED_EVERY = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class FeedView:
    """A user's subscription to a schedule."""

    created_at: datetime
    #: Within an hour; None: never.
    last_read_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class OpenedFeed:
    """What a token opens."""

    user_id: int
    project: ProjectView
    schedule: ScheduleView


def find_feed(schedule_id: int, user_id: int, *, session: Session) -> FeedView | None:
    """Return a user's subscription to a schedule, or None."""
    row = session.scalar(_of(schedule_id, user_id))
    return FeedView(created_at=row.created_at, last_read_at=row.last_read_at) if row else None


def _of(schedule_id: int, user_id: int) -> Select[OnCallFeed]:
    return select(OnCallFeed).where(
        OnCallFeed.schedule_id == schedule_id, OnCallFeed.user_id == user_id
    )


def renew_feed(
    schedule_id: int, user_id: int, *, session: Session, keyring: Keyring, now: datetime
) -> str:
    """Return the token of a new address, to be shown once; a former address ends."""
    end_feed(schedule_id, user_id, session=session)
    made = keyring.issue(CredentialType.CALENDAR_FEED)
    session.add(
        OnCallFeed(schedule_id=schedule_id, user_id=user_id, digest=made.digest, created_at=now)
    )
    session.flush()
    return made.clear


def end_feed(schedule_id: int, user_id: int, *, session: Session) -> bool:
    """End a user's address, and return whether there was one."""
    mine = (OnCallFeed.schedule_id == schedule_id) & (OnCallFeed.user_id == user_id)
    gone = session.scalars(delete(OnCallFeed).where(mine).returning(OnCallFeed.id)).all()
    return bool(gone)


def open_feed(token: str, *, session: Session, keyring: Keyring, now: datetime) -> OpenedFeed:
    """Return what a token opens, or raise NotFoundError, whatever the reason is."""
    digests = keyring.credential_digests(token, CredentialType.CALENDAR_FEED)
    row = session.execute(
        select(OnCallFeed, OnCallSchedule.project_id, Project.path, User.is_admin)
        .join(OnCallSchedule, OnCallSchedule.id == OnCallFeed.schedule_id)
        .join(Project, Project.id == OnCallSchedule.project_id)
        .join(User, User.id == OnCallFeed.user_id)
        .where(OnCallFeed.digest.in_(digests), Project.deleted_at.is_(None), User.state == ACTIVE)
    ).first()
    if row is None:
        raise _unknown()
    feed = row.OnCallFeed
    viewer = Viewer(user_id=feed.user_id, is_admin=row.is_admin, today=now.date())
    project = _project(row.path, viewer, session=session)
    _note_use(feed, token, session=session, keyring=keyring, now=now)
    schedule = get_schedule(project.id, feed.schedule_id, session=session)
    return OpenedFeed(user_id=feed.user_id, project=project, schedule=schedule)


def _project(path: str, viewer: Viewer, *, session: Session) -> ProjectView:
    try:
        project = get_project_for(
            path, viewer, at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS, session=session
        )
        check_feature(project, Feature.MONITOR)
    except DomainError as error:
        raise _unknown() from error
    return project


def _unknown() -> NotFoundError:
    return NotFoundError("This calendar does not exist, or you no longer have access.")


def _note_use(
    feed: OnCallFeed, token: str, *, session: Session, keyring: Keyring, now: datetime
) -> None:
    """Note when a feed was read, and hash its token with the newest key."""
    renewed = keyring.rehashed(token, feed.digest)
    values = {"digest": renewed, "keyed_at": now} if renewed else {}
    last = feed.last_read_at
    if values or last is None or last < now - _NOTED_EVERY:
        session.execute(
            update(OnCallFeed)
            .where(OnCallFeed.id == feed.id, OnCallFeed.digest == feed.digest)
            .values(last_read_at=now, **values)
            .execution_options(synchronize_session=False)
        )
