"""The projects that a report covers: a single project, or all projects below a group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from domain.access.actor import Work
from domain.projects.access import namespace_of, permissions_of
from domain.projects.owners import projects_of
from domain.projects.views import GroupView, Holder, ProjectView, viewer_of
from models import Project


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The projects whose alerts the reader may see, and other visible projects."""

    #: Projects by id, in the order of their paths.
    projects: Mapping[int, ProjectView]
    #: Paths of projects whose monitoring is turned off or not visible to the reader.
    left_out: Sequence[str] = ()


def scope_of(work: Work, holder: Holder) -> Scope:
    """Return the projects that a report of a project or group covers."""
    if not isinstance(holder, GroupView):
        return Scope(projects={holder.id: holder})
    below = select(Project).where(Project.id.in_(projects_of(holder))).order_by(Project.path_key)
    rows = work.session.scalars(below).all()
    permissions = permissions_of(viewer_of(work), map(namespace_of, rows), session=work.session)
    seen = [permissions.project(each) for each in rows if permissions.sees_project(each)]
    return Scope(
        projects={each.id: each for each in seen if each.shows_alerts},
        left_out=[each.path for each in seen if not each.shows_alerts],
    )
