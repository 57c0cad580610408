"""The open incidents that a user looks after, in all projects."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from models import Incident, IncidentAssignee, Project


@dataclass(frozen=True, kw_only=True)
class AssignedIncident:
    """An open incident that a user looks after."""

    iid: int
    title: str
    status: str
    project_path: str
    created_at: datetime


def open_incidents_of(
    user_id: int, projects: Select[int], *, most: int, session: Session
) -> tuple[AssignedIncident, ...]:
    """Return the newest open incidents assigned to a user in the selected projects."""
    rows = session.execute(
        select(Incident.iid, Incident.title, Incident.status, Incident.created_at, Project.path)
        .join(IncidentAssignee, IncidentAssignee.incident_id == Incident.id)
        .join(Project, Project.id == Incident.project_id)
        .where(
            IncidentAssignee.user_id == user_id,
            Incident.status != "resolved",
            # `+ 0` disables the project's index: the assignments of one user are fewer.
            (Incident.project_id + 0).in_(projects),
        )
        .order_by(IncidentAssignee.incident_id.desc())
        .limit(most)
    )
    return tuple(
        AssignedIncident(
            iid=row.iid,
            title=row.title,
            status=row.status,
            project_path=row.path,
            created_at=row.created_at,
        )
        for row in rows
    )
