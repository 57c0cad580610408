"""Stores notices about assignments, which are later emailed to the assignees.

`domain/housekeeping/assignment_mail.py` writes one email to each assignee about all recorded
assignments, so a bulk change to many alerts causes only one email.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert
from sqlalchemy.orm import Session

from models import AssignmentNotice


@dataclass(frozen=True, kw_only=True)
class NewAssignment:
    """An assignment of a user to an alert or an incident."""

    user_id: int
    alert_id: int | None = None
    incident_id: int | None = None


def store_assignment_notices(
    assignments: Collection[NewAssignment],
    *,
    by_id: int | None,
    by_name: str,
    session: Session,
    now: datetime,
) -> None:
    """Store notices for assigned users, except for the user who made the assignment."""
    rows = [
        {
            "user_id": each.user_id,
            "alert_id": each.alert_id,
            "incident_id": each.incident_id,
            "by_name": by_name,
            "created_at": now,
        }
        for each in assignments
        if each.user_id != by_id
    ]
    if rows:
        session.execute(insert(AssignmentNotice), rows)
