"""Shares projects with groups, which gives the groups' members a role in the projects."""

from datetime import date
from typing import Annotated

from pydantic import Field
from sqlalchemy import ColumnElement, select

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.access.checks import check_not_personal, check_role
from domain.access.roles import Role
from domain.audit.events import EventKind
from domain.core.errors import ForbiddenError, InvalidError, NotFoundError
from domain.core.types.base import Argument, Body, Id, RequestDay, Resource
from domain.projects.access import get_group
from domain.projects.member_types import RoleParameter
from domain.projects.members import check_can_grant_role, check_expiry_date, lock_members
from domain.projects.paths import find_group_path, list_ancestor_paths
from domain.projects.types import Name
from domain.projects.views import ProjectView, get_viewer
from models import Group, ProjectShare


class NewShare(Body):
    """The group to share a project with."""

    #: Id or full path of the group.
    group_id: Annotated[Id | Name, Argument("GROUP")]
    #: Maximum role. Members of the group have their own role in the project, up to this maximum.
    group_access: Annotated[RoleParameter, Argument("ROLE")]
    #: First day on which the share no longer gives a role.
    expires_at: RequestDay | None = None


class Share(Resource):
    """The share of a project with a group: the maximum role and the expiry date."""

    id: int
    project_id: int
    group_id: int
    group_access: int = Field(validation_alias="role")
    expires_at: date | None


@action("projects.share")
def share_project(work: UnitOfWork, project: ProjectView, new: NewShare) -> Share:
    """Share a project with a group, or change the role of a share.

    The caller must be a member of the group.

    Raise NotFoundError for an unknown group. Raise ForbiddenError if the caller does not have the
    required role, and InvalidError for an invalid value.
    """
    session, viewer = work.session, get_viewer(work)
    giver = lock_members(project.namespace, viewer, session=session)
    check_can_grant_role(new.group_access, giver)
    check_expiry_date(new.expires_at, work.now.date())
    path = find_group_path(str(new.group_id), session=session)
    group = get_group(path, viewer, session=session)
    check_role(group, Role.GUEST)
    check_not_personal(group)
    if group.path in list_ancestor_paths(project.path):
        message = f"The project is in {group.path}, so members of the group already have access."
        raise InvalidError(message, field="group_id")
    share = session.scalar(select(ProjectShare).where(*_build_share_conditions(project, group.id)))
    if share is None:
        share = ProjectShare(project_id=project.id, group_id=group.id, created_at=work.now)
        session.add(share)
    else:
        _check_can_change_share(share, giver, work.now.date())
    share.role, share.expires_at = int(new.group_access), new.expires_at
    session.flush()
    _record_share_event(work, project, group.path, new.group_access.label)
    return Share.model_validate(share)


@action("projects.unshare")
def unshare_project(work: UnitOfWork, project: ProjectView, group_id: int) -> None:
    """Stop sharing a project with a group.

    Raise NotFoundError if there is no such share, and ForbiddenError if the caller lacks the
    required role.
    """
    giver = lock_members(project.namespace, get_viewer(work), session=work.session)
    found = select(ProjectShare, Group.path).join(Group, Group.id == ProjectShare.group_id)
    row = work.session.execute(
        found.where(*_build_share_conditions(project, group_id))
    ).one_or_none()
    if row is None:
        raise NotFoundError("The project is not shared with this group.")
    _check_can_change_share(row.ProjectShare, giver, work.now.date())
    work.session.delete(row.ProjectShare)
    _record_share_event(work, project, row.path, "none")


def _check_can_change_share(share: ProjectShare, giver: Role, today: date) -> None:
    """Check that the role of a share does not exceed the role of the caller.

    Raise ForbiddenError if the role is too high.
    """
    is_live = share.expires_at is None or share.expires_at > today
    if is_live and share.role > giver:
        raise ForbiddenError(
            f"You cannot change or remove a share with the {Role(share.role).label} role, because "
            f"your own role is {giver.label}."
        )


def _build_share_conditions(
    project: ProjectView, group_id: int
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return ProjectShare.project_id == project.id, ProjectShare.group_id == group_id


def _record_share_event(work: UnitOfWork, project: ProjectView, group: str, role: str) -> None:
    details = {"changed": "shared groups", "group": group, "role": role}
    kind, place = EventKind.PROJECT_CHANGED, project.namespace
    work.record_audit_event(kind, subject=project.path, event_namespace=place, details=details)
