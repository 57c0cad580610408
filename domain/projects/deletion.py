"""Marks groups and projects as deleted: gone for everybody at once, their paths free again.

What belongs to them may be a million rows, so the worker removes it afterwards in small slices.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, insert, literal, null, select, update
from sqlalchemy.orm import Session

from domain.errors import NotFoundError
from domain.projects.former_paths import forget_former_paths
from domain.projects.grants import subtree
from domain.projects.views import Namespace
from models import (
    Bot,
    Group,
    Invitation,
    Member,
    PersonalAccessToken,
    Project,
    RegistryRemoval,
    RegistryRepository,
)


def delete_project(project: Namespace, *, session: Session, now: datetime) -> None:
    """Mark a project as deleted; raise NotFoundError if it is gone already."""
    row = session.scalar(
        select(Project)
        .where(Project.id == project.id, Project.deleted_at.is_(None))
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise _gone()
    _mark_projects([row], session=session, now=now)


def delete_group(group: Namespace, *, session: Session, now: datetime) -> Sequence[str]:
    """Mark a group, the groups below it and all their projects as deleted.

    Returns the paths of the projects; raises NotFoundError if the group is gone already.
    """
    root = select(Group.id).where(Group.id == group.id, Group.deleted_at.is_(None))
    # Nothing can be created below a group whose row is locked (`domain/projects/creation.py`).
    if session.scalar(root.with_for_update()) is None:
        raise _gone()
    groups = session.scalars(
        select(Group)
        .where(Group.id.in_(subtree(root)), Group.deleted_at.is_(None))
        .order_by(Group.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    projects = session.scalars(
        select(Project)
        .where(
            Project.group_id.in_([each.id for each in groups]),
            Project.deleted_at.is_(None),
        )
        .order_by(Project.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    paths = [project.path for project in projects]
    _mark_projects(projects, session=session, now=now)
    _mark_groups(groups, session=session, now=now)
    return paths


def _gone() -> NotFoundError:
    return NotFoundError("It was deleted in the meantime.")


def _mark_projects(projects: Sequence[Project], *, session: Session, now: datetime) -> None:
    ids = [project.id for project in projects]
    for project in projects:
        project.path = _path_of_deleted(project)
        # Should anything still look by visibility.
        project.visibility = "private"
        project.deleted_at = now
    _queue_images(ids, session=session, now=now)
    forget_former_paths(project_ids=ids, session=session)
    _end_access(
        members=Member.project_id.in_(ids),
        bots=Bot.project_id.in_(ids),
        invitations=Invitation.project_id.in_(ids),
        session=session,
        now=now,
    )


def _mark_groups(groups: Sequence[Group], *, session: Session, now: datetime) -> None:
    ids = [group.id for group in groups]
    for group in groups:
        group.path = _path_of_deleted(group)
        group.deleted_at = now
    forget_former_paths(group_ids=ids, session=session)
    _end_access(
        members=Member.group_id.in_(ids),
        bots=Bot.group_id.in_(ids),
        invitations=Invitation.group_id.in_(ids),
        session=session,
        now=now,
    )


def _queue_images(project_ids: Sequence[int], *, session: Session, now: datetime) -> None:
    """Let the worker delete the images of projects in the container registry."""
    repositories = select(RegistryRepository.id, null(), literal(now), literal(now), literal(0))
    columns = ["repository_id", "rule", "requested_at", "due_at", "failures"]
    session.execute(
        insert(RegistryRemoval)
        .from_select(columns, repositories.where(RegistryRepository.project_id.in_(project_ids)))
        .execution_options(synchronize_session=False)
    )


def _path_of_deleted(row: Group | Project) -> str:
    """Return a path that no other group or project has or can have: `-` begins none."""
    return f"-/deleted/{row.id}"


def _end_access(
    *,
    members: ColumnElement[bool],
    bots: ColumnElement[bool],
    invitations: ColumnElement[bool],
    session: Session,
    now: datetime,
) -> None:
    """Remove members and invitations, and revoke the tokens of bots."""
    tokens = (
        update(PersonalAccessToken)
        .where(
            PersonalAccessToken.user_id.in_(select(Bot.user_id).where(bots)),
            PersonalAccessToken.revoked_at.is_(None),
        )
        .values(revoked_at=now)
    )
    for statement in (tokens, delete(Member).where(members), delete(Invitation).where(invitations)):
        session.execute(statement.execution_options(synchronize_session=False))
