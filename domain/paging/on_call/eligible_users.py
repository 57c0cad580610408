"""Users who can be on call: members with an active account and access to the alerts."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, time

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Ability
from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.core.errors import InvalidError
from domain.projects.member_lists import find_ability_end_dates, list_usernames_with_ability
from domain.projects.views import Namespace, ProjectOrGroup
from models import User
from models.case_folding import fold_text

#: Time that is earlier than all schedules.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def find_eligibility_ends(
    namespace: Namespace, user_ids: Collection[int], *, session: Session, today: date
) -> Mapping[int, datetime]:
    """Return the times until which users can be on call in a project or group, by user ID.

    Users who can be on call without a time limit are left out. The time is LONG_AGO for users who
    cannot be on call at all.
    """
    if not user_ids:
        return {}
    live = session.scalars(select(User.id).where(User.id.in_(user_ids), IS_ACTIVE_HUMAN)).all()
    days = find_ability_end_dates(
        Ability.READ_ALERTS, namespace, live, session=session, today=today
    )
    absent = dict.fromkeys(set(user_ids) - days.keys(), LONG_AGO)
    return absent | {
        user_id: datetime.combine(day, time(), UTC) for user_id, day in days.items() if day
    }


def list_eligible_usernames(
    namespace: Namespace, *, maximum: int, session: Session, today: date
) -> tuple[str, ...]:
    """Return the names of at most `maximum` users who can be on call."""
    able = list_usernames_with_ability(
        Ability.READ_ALERTS, namespace, limit=maximum, session=session, today=today
    )
    live = select(User.username).where(User.username.in_(able), IS_ACTIVE_HUMAN)
    return tuple(sorted(session.scalars(live), key=str.lower))


def find_user_ids(usernames: Iterable[str], *, field: str, session: Session) -> tuple[int, ...]:
    """Return the IDs of the users with the given usernames.

    Raise InvalidError if a user does not exist.
    """
    return tuple(_find_user_id(name, field=field, session=session) for name in usernames)


def _find_user_id(username: str, *, field: str, session: Session) -> int:
    wanted = username.strip().removeprefix("@").replace("\x00", "\ufffd")
    # Deleted accounts are included, since they stay in a rotation until it is changed.
    found = session.scalar(select(User.id).where(User.username_key == fold_text(wanted)))
    if found is None:
        message = f"{wanted[:50]} cannot be on call. No member has this username."
        raise InvalidError(message, field=field)
    return found


def find_eligible_user_id(
    work: UnitOfWork, holder: ProjectOrGroup, username: str, *, field: str
) -> int:
    """Return the ID of a user who can be on call.

    Raise InvalidError if the user does not exist or cannot be on call.
    """
    (user_id,) = find_user_ids([username], field=field, session=work.session)
    check_can_be_on_call(work, holder, {username: user_id}, field=field)
    return user_id


def check_can_be_on_call(
    work: UnitOfWork, holder: ProjectOrGroup, users: Mapping[str, int], *, field: str
) -> None:
    """Check that users can be on call in a project or group.

    Raise InvalidError if a user cannot be on call.
    """
    ends = find_eligibility_ends(
        holder.namespace, users.values(), session=work.session, today=work.now.date()
    )
    for name, user_id in users.items():
        if ends.get(user_id) == LONG_AGO:
            message = (
                f"{name[:50]} cannot be on call. Only members of the "
                f"{holder.namespace.resource_type} with at least the Developer role can be on call."
            )
            raise InvalidError(message, field=field)
