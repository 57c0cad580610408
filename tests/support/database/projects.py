"""Stores the rows of a project without an action."""

from sqlalchemy.orm import Session

from models import AlertCounter, Group, Project
from tests.support.accounts.people import now


def store_project(session: Session) -> Project:
    """Store acme/shop in a new group."""
    group = Group(name="acme", path="acme", created_at=now())
    session.add(group)
    session.flush()
    made = Project(
        group_id=group.id, name="shop", path="acme/shop", visibility="private", created_at=now()
    )
    session.add(made)
    session.flush()
    session.add(AlertCounter(project_id=made.id))
    session.commit()
    return made
