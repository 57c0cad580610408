"""The users who look after an incident."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from domain.accounts.users import UserView
from domain.alerts.handling.assignments import get_candidate, username_of
from domain.audit.events import Actor
from domain.errors import InvalidError
from domain.incidents.timeline import EntryKind, NewEntry, add_entries
from domain.mail.assignment_notices import NewAssignment, note_assignments
from domain.projects.views import ProjectView
from models import Incident, IncidentAssignee, User

MOST_ASSIGNEES = 20


def usernames_of(user_ids: Sequence[int], *, session: Session) -> tuple[str, ...]:
    """Return the names of users to assign; 0 is nobody. Raise InvalidError for an unknown id."""
    return tuple(username_of(user_id, session=session) for user_id in user_ids if user_id)


def set_assignees(
    project: ProjectView,
    incident: Incident,
    usernames: Sequence[str],
    *,
    by: Actor | None,
    session: Session,
    now: datetime,
) -> None:
    """Assign an incident to these users and nobody else; raise InvalidError.

    Who is assigned stays so, even after they lost their role.
    """
    wanted = list(dict.fromkeys(usernames))
    if len(wanted) > MOST_ASSIGNEES:
        message = f"An incident can have at most {MOST_ASSIGNEES} assignees."
        raise InvalidError(message, field="assignees")
    present = _assigned(incident.id, session=session)
    new = [
        _candidate(project, name, by=by, session=session, now=now)
        for name in wanted
        if name not in present
    ]
    gone = {name: user_id for name, user_id in present.items() if name not in wanted}
    session.execute(
        delete(IncidentAssignee).where(
            IncidentAssignee.incident_id == incident.id,
            IncidentAssignee.user_id.in_(gone.values()),
        )
    )
    if new:
        rows = [{"incident_id": incident.id, "user_id": user.id} for user in new]
        session.execute(insert(IncidentAssignee), rows)
    changes = [(EntryKind.UNASSIGNED, name) for name in gone]
    changes += [(EntryKind.ASSIGNED, user.username) for user in new]
    entries = [NewEntry(incident_id=incident.id, kind=kind, text=name) for kind, name in changes]
    add_entries(entries, by=by, session=session, now=now)
    note_assignments(
        [NewAssignment(user_id=user.id, incident_id=incident.id) for user in new],
        by_id=by.id if by else None,
        by_name=by.name if by else "",
        session=session,
        now=now,
    )
    if entries:
        incident.updated_at = now


def _assigned(incident_id: int, *, session: Session) -> dict[str, int]:
    rows = session.execute(
        select(User.username, User.id)
        .join(IncidentAssignee, IncidentAssignee.user_id == User.id)
        .where(IncidentAssignee.incident_id == incident_id)
    )
    return dict(rows.all())


def _candidate(
    project: ProjectView, username: str, *, by: Actor | None, session: Session, now: datetime
) -> UserView:
    try:
        return get_candidate(project, username, by=by, session=session, today=now.date())
    except InvalidError as error:
        message = "Incidents can be assigned to members of the project, Developer or higher."
        raise InvalidError(message, field="assignees") from error
