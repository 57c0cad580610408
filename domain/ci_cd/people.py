"""The users who reported something, as lists show them."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from models import User


@dataclass(frozen=True, kw_only=True)
class Reporter:
    """The user whose token a report came with."""

    id: int
    username: str
    name: str
    state: str


def reporters(user_ids: Iterable[int | None], *, session: Session) -> dict[int | None, Reporter]:
    """Return the users with these ids; whose account was deleted is missing."""
    wanted = {each for each in user_ids if each is not None}
    if not wanted:
        return {}
    rows = session.execute(
        select(User.id, User.username, User.name, User.state).where(User.id.in_(wanted))
    )
    return {
        row.id: Reporter(id=row.id, username=row.username, name=row.name, state=row.state)
        for row in rows
    }
