"""What holds pages of projects back at a moment, for lists of projects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from domain.maintenance_windows.windows import find_current
from domain.projects.views import ProjectView
from domain.silences.silences import find_live


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
