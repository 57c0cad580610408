"""Assignment of alerts to users."""

from datetime import date

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Ability
from domain.accounts.users import UserView, get_user
from domain.alerts.handling.activity import ActivityEntryKind, add_activity_entry
from domain.alerts.listing.filters import NO_ASSIGNEE
from domain.audit.events import EventActor
from domain.core.database.bulk_statements import build_session_insert
from domain.core.errors import InvalidError, NotFoundError
from domain.delivery.mail.assignment_notices import NewAssignment, store_assignment_notices
from domain.projects.member_lists import find_effective_member, list_usernames_with_ability
from domain.projects.views import ProjectView
from models import Alert, Assignment, User


def list_assignable_users(
    project: ProjectView, *, me: str, most: int, session: Session, today: date
) -> tuple[str, ...]:
    """Return the usernames of possible assignees: `me`, and at most `most` other users."""
    ability, namespace = Ability.ADMIN_ALERTS, project.namespace
    able = list_usernames_with_ability(ability, namespace, limit=most, session=session, today=today)
    return tuple(sorted({*able, me}, key=str.lower))


def get_assignee_username(user_id: int, *, session: Session) -> str:
    """Return the username for the ID of a new assignee.

    Raise InvalidError if no user has this ID.
    """
    name = session.scalar(select(User.username).where(User.id == user_id))
    if name is None:
        raise _build_not_assignable_error("assignee_id")
    return name


def _build_not_assignable_error(field: str) -> InvalidError:
    message = "The assignee must be a member of the project with the Developer role or higher."
    return InvalidError(message, field=field)


def get_assignable_user(
    project: ProjectView, username: str, *, by: EventActor | None, session: Session, today: date
) -> UserView:
    """Return the user with exactly this name.

    Raise InvalidError if alerts cannot be assigned to the user.
    """
    try:
        user = get_user(username, session=session)
    except NotFoundError as error:
        raise _build_not_assignable_error("assignee") from error
    member = find_effective_member(project.namespace, user.id, session=session, today=today)
    is_able = member is not None and member.has_ability(Ability.ADMIN_ALERTS)
    if user.username != username or not (is_able or (by and username == by.name)):
        raise _build_not_assignable_error("assignee")
    return user


def set_assignee(
    work: UnitOfWork, project: ProjectView, iid: int, username: str, *, by: EventActor | None
) -> None:
    """Assign an alert to a user, or unassign it with NO_ASSIGNEE.

    Raise InvalidError if alerts cannot be assigned to the user, and NotFoundError if there is no
    such alert.
    """
    session, now = work.session, work.now
    alert_id = session.scalar(
        select(Alert.id).where(Alert.project_id == project.id, Alert.iid == iid).with_for_update()
    )
    if alert_id is None:
        raise NotFoundError(f"Alert {iid} not found in this project.")
    current = session.scalar(
        select(User.username)
        .join(Assignment, Assignment.user_id == User.id)
        .where(Assignment.alert_id == alert_id)
    )
    if username == (current or NO_ASSIGNEE):
        return
    if username == NO_ASSIGNEE:
        session.execute(delete(Assignment).where(Assignment.alert_id == alert_id))
        add_activity_entry(
            alert_id, ActivityEntryKind.ASSIGNEE, "", by=by, session=session, now=now
        )
        return
    user = get_assignable_user(project, username, by=by, session=session, today=now.date())
    session.execute(
        build_session_insert(Assignment, session=session)
        .values(alert_id=alert_id, user_id=user.id)
        .on_conflict_do_update(index_elements=["alert_id"], set_={"user_id": user.id})
    )
    add_activity_entry(
        alert_id, ActivityEntryKind.ASSIGNEE, user.username, by=by, session=session, now=now
    )
    assigned = [NewAssignment(user_id=user.id, alert_id=alert_id)]
    by_id, by_name = (by.id, by.name) if by else (None, "")
    store_assignment_notices(assigned, by_id=by_id, by_name=by_name, session=session, now=now)
