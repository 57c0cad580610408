"""The silences in force, for whoever is about to page."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.matchers import Matcher
from domain.alerts.matching.parser import parse_matchers
from models import Silence, User


class LiveSilence(NamedTuple):
    """An active silence."""

    id: int
    matchers: tuple[Matcher, ...]
    #: The comment, or else the matchers.
    name: str
    #: A user name; empty for the command line.
    created_by: str
    ends_at: datetime


def find_live(
    project_ids: Sequence[int], *, at: datetime, session: Session
) -> Mapping[int, Sequence[LiveSilence]]:
    """Return the active silences of projects by project, the one that ends last first."""
    rows = session.execute(
        select(Silence, User.username)
        .outerjoin(User, User.id == Silence.created_by_id)
        .where(Silence.project_id.in_(project_ids), Silence.ends_at > at, Silence.starts_at <= at)
        .order_by(Silence.ends_at.desc(), Silence.id)
    )
    found: dict[int, list[LiveSilence]] = {}
    for row, author in rows:
        live = LiveSilence(
            id=row.id,
            matchers=parse_matchers(row.matchers),
            name=row.comment or row.matchers,
            created_by=author or "",
            ends_at=row.ends_at,
        )
        found.setdefault(row.project_id, []).append(live)
    return found
