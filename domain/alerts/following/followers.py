"""Which parts of the service follow the alerts of a project."""

from enum import StrEnum

from sqlalchemy import delete
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from models import AlertFollower


class Follower(StrEnum):
    """A part of the service that acts when an alert changes."""

    ESCALATIONS = "escalations"
    INCIDENTS = "incidents"
    WEBHOOKS = "webhooks"


def follow(project_id: int, follower: Follower, *, session: Session) -> None:
    """Tell a follower of the changes of a project's alerts from now on."""
    insert = insert_into(AlertFollower, session=session)
    row = {"project_id": project_id, "follower": follower.value}
    session.execute(insert.values(row).on_conflict_do_nothing())


def unfollow(project_id: int, follower: Follower, *, session: Session) -> None:
    """Tell a follower no more; it still handles the changes that were made before."""
    session.execute(
        delete(AlertFollower).where(
            AlertFollower.project_id == project_id, AlertFollower.follower == follower.value
        )
    )
