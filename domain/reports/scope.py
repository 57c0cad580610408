"""The projects that a report covers: a single project, or all projects below a group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from domain.access.actor import UnitOfWork
from domain.projects.access import build_namespace, read_permissions
from domain.projects.owners import select_project_ids
from domain.projects.views import GroupView, ProjectOrGroup, ProjectView, get_viewer
from models import Project


@dataclass(frozen=True, kw_only=True)
class ReportScope:
    """The projects whose alerts the reader may see, and other visible projects."""

    #: Projects by id, in the order of their paths.
    projects: Mapping[int, ProjectView]
    #: Paths of projects whose monitoring is turned off or not visible to the reader.
    left_out: Sequence[str] = ()


def find_report_scope(work: UnitOfWork, holder: ProjectOrGroup) -> ReportScope:
    """Return the projects that a report about a project or group covers."""
    if not isinstance(holder, GroupView):
        return ReportScope(projects={holder.id: holder})
    below = (
        select(Project).where(Project.id.in_(select_project_ids(holder))).order_by(Project.path_key)
    )
    rows = work.session.scalars(below).all()
    permissions = read_permissions(
        get_viewer(work), map(build_namespace, rows), session=work.session
    )
    seen = [
        permissions.build_project_view(each) for each in rows if permissions.can_see_project(each)
    ]
    return ReportScope(
        projects={each.id: each for each in seen if each.shows_alerts},
        left_out=[each.path for each in seen if not each.shows_alerts],
    )
