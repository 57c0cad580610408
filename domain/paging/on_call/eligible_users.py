"""Users who can be on call: members who see the alerts and have an active account."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, time

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import Work
from domain.access.roles import Ability
from domain.accounts.users import IN_USE
from domain.core.errors import InvalidError
from domain.projects.member_lists import last_days_with, users_with
from domain.projects.views import Holder, Namespace
from models import User
from models.folding import fold

#: Time before all schedules.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def ends_of_duty(
    place: Namespace, user_ids: Collection[int], *, session: Session, today: date
) -> Mapping[int, datetime]:
    """Return until when users can be on call in a project or group.

    Users without an end are left out. The time is LONG_AGO for users who cannot be on call at all.
    """
    if not user_ids:
        return {}
    live = session.scalars(select(User.id).where(User.id.in_(user_ids), IN_USE)).all()
    days = last_days_with(Ability.READ_ALERTS, place, live, session=session, today=today)
    absent = dict.fromkeys(set(user_ids) - days.keys(), LONG_AGO)
    return absent | {
        user_id: datetime.combine(day, time(), UTC) for user_id, day in days.items() if day
    }


def candidates(place: Namespace, *, most: int, session: Session, today: date) -> tuple[str, ...]:
    """Return the names of users who can be on call, at most `most`."""
    able = users_with(Ability.READ_ALERTS, place, limit=most, session=session, today=today)
    live = select(User.username).where(User.username.in_(able), IN_USE)
    return tuple(sorted(session.scalars(live), key=str.lower))


def ids_of(usernames: Iterable[str], *, field: str, session: Session) -> tuple[int, ...]:
    """Return the ids of users.

    Raise InvalidError if a name does not exist.
    """
    return tuple(_id_of(name, field=field, session=session) for name in usernames)


def _id_of(username: str, *, field: str, session: Session) -> int:
    wanted = username.strip().removeprefix("@").replace("\x00", "\ufffd")
    # Deleted accounts are included, since they stay in a rotation until it is changed.
    found = session.scalar(select(User.id).where(User.username_key == fold(wanted)))
    if found is None:
        message = f"{wanted[:50]} cannot be on call. No member has this user name."
        raise InvalidError(message, field=field)
    return found


def id_of_candidate(work: Work, holder: Holder, username: str, *, field: str) -> int:
    """Return the id of a user who can be on call.

    Raise InvalidError if the user does not exist or cannot be on call.
    """
    (user_id,) = ids_of([username], field=field, session=work.session)
    check_can_be_on_call(work, holder, {username: user_id}, field=field)
    return user_id


def check_can_be_on_call(
    work: Work, holder: Holder, users: Mapping[str, int], *, field: str
) -> None:
    """Raise InvalidError if a user cannot be on call here."""
    ends = ends_of_duty(
        holder.namespace, users.values(), session=work.session, today=work.now.date()
    )
    for name, user_id in users.items():
        if ends.get(user_id) == LONG_AGO:
            message = (
                f"{name[:50]} cannot be on call. Only members of the "
                f"{holder.namespace.resource_type} with at least the Developer role can be on call."
            )
            raise InvalidError(message, field=field)
