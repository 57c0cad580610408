"""What holds pages of projects back at a moment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.alerts.matching.matchers import Matcher
from domain.alerts.matching.parser import parse_matchers
from domain.maintenance_windows.windows import find_current
from domain.projects.views import ProjectView
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


@dataclass(frozen=True, kw_only=True)
class InForce:
    """The silences and maintenance windows of a project that are in force."""

    silences: int
    windows: int
    #: When the last of them ends, if nobody ends it before.
    until: datetime


def in_force(
    projects: Iterable[ProjectView], *, at: datetime, session: Session
) -> Mapping[int, InForce]:
    """Return what is in force by project, for those whose alerts the viewer may see."""
    ids = [project.id for project in projects if project.shows_alerts]
    if not ids:
        return {}
    silences = find_live(ids, at=at, session=session)
    windows = find_current(ids, at=at, session=session)
    return {
        project_id: InForce(
            silences=len(silences.get(project_id, ())),
            windows=len(windows.get(project_id, ())),
            until=max(
                *(silence.ends_at for silence in silences.get(project_id, ())),
                *(window.occurrence.ends_at for window in windows.get(project_id, ())),
                at,
            ),
        )
        for project_id in silences.keys() | windows.keys()
    }


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
