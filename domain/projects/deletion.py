"""Marks groups and projects as deleted, which hides them immediately and frees their paths.

Groups and projects may have millions of dependent rows. The worker removes these rows later, in
small batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Select,
    exists,
    func,
    insert,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.core.database.bulk_statements import build_bulk_delete, build_bulk_update
from domain.core.errors import NotFoundError
from domain.projects.access import COUNT_LIMIT
from domain.projects.views import Namespace
from domain.projects.visibility_sql import select_subtree
from models import (
    Alert,
    Bot,
    Deployment,
    Environment,
    EscalationPolicy,
    FormerPath,
    Group,
    Heartbeat,
    Incident,
    Integration,
    Invitation,
    Member,
    MemberRole,
    OnCallSchedule,
    PersonalAccessToken,
    Project,
    ProjectRelease,
    RegistryRemoval,
    RegistryRepository,
    Silence,
)


def delete_project(project: Namespace, *, session: Session, now: datetime) -> None:
    """Mark a project as deleted.

    Raise NotFoundError if the project was already deleted.
    """
    row = session.scalar(
        select(Project)
        .where(Project.id == project.id, Project.deleted_at.is_(None))
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise _build_deleted_error()
    _mark_as_deleted([row], session=session, now=now)


def delete_group(group: Namespace, *, session: Session, now: datetime) -> Sequence[str]:
    """Mark a group, its subgroups and all their projects as deleted.

    Return the paths of the projects. Raise NotFoundError if the group was already deleted.
    """
    root = select(Group.id).where(Group.id == group.id, Group.deleted_at.is_(None))
    # Nothing can be created in a group while its row is locked
    # (`domain/projects/namespace_changes.py`).
    if session.scalar(root.with_for_update()) is None:
        raise _build_deleted_error()
    groups = session.scalars(
        select(Group)
        .where(Group.id.in_(select_subtree(root)), Group.deleted_at.is_(None))
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
    _mark_as_deleted(projects, session=session, now=now)
    _mark_as_deleted(groups, session=session, now=now)
    # Members of transferred groups or projects may still have a custom role of the group, so the
    # custom roles remain.
    belongs_to_group = MemberRole.group_id.in_([each.id for each in groups])
    session.execute(build_bulk_update(MemberRole).where(belongs_to_group).values(group_id=None))
    return paths


def _build_deleted_error() -> NotFoundError:
    return NotFoundError("The group or project was deleted in the meantime.")


def _mark_as_deleted(
    rows: Sequence[Group] | Sequence[Project], *, session: Session, now: datetime
) -> None:
    """Mark groups or projects as deleted, and revoke the access of their members and bots."""
    projects = [row.id for row in rows if isinstance(row, Project)]
    groups = [row.id for row in rows if isinstance(row, Group)]
    for row in rows:
        # No other group or project can have this path, because no path starts with `-`.
        row.path = f"-/deleted/{row.id}"
        row.deleted_at = now
        if isinstance(row, Project):
            # This is a safeguard for queries that check only the visibility.
            row.visibility = "private"
    if projects:
        _queue_image_removals(projects, session=session, now=now)
    bots = select(Bot.user_id).where(_belongs_to_any(Bot, groups, projects))
    revoked = (
        build_bulk_update(PersonalAccessToken)
        .where(
            PersonalAccessToken.user_id.in_(bots),
            PersonalAccessToken.revoked_at.is_(None),
        )
        .values(revoked_at=now)
    )
    gone = [
        build_bulk_delete(each).where(_belongs_to_any(each, groups, projects))
        for each in (FormerPath, Member, Invitation)
    ]
    for statement in (revoked, *gone):
        session.execute(statement)


def _belongs_to_any(
    table: type[Bot | FormerPath | Invitation | Member],
    groups: Sequence[int],
    projects: Sequence[int],
) -> ColumnElement[bool]:
    return table.group_id.in_(groups) if groups else table.project_id.in_(projects)


def _queue_image_removals(project_ids: Sequence[int], *, session: Session, now: datetime) -> None:
    """Queue the images of projects for removal from the container registry."""
    repositories = select(RegistryRepository.id, null(), literal(now), literal(now), literal(0))
    columns = ["repository_id", "rule", "requested_at", "due_at", "failures"]
    session.execute(
        insert(RegistryRemoval).from_select(
            columns, repositories.where(RegistryRepository.project_id.in_(project_ids))
        )
    )


_PROJECT_CONTENTS: tuple[tuple[str, InstrumentedAttribute[int]], ...] = (
    ("alert", Alert.project_id),
    ("incident", Incident.project_id),
    ("integration", Integration.project_id),
    ("heartbeat", Heartbeat.project_id),
    ("environment", Environment.project_id),
    ("deployment", Deployment.project_id),
    ("release", ProjectRelease.project_id),
)
#: Kinds of items that both groups and projects can have.
_NAMESPACE_CONTENTS: tuple[tuple[str, type[EscalationPolicy | OnCallSchedule | Silence]], ...] = (
    ("on-call schedule", OnCallSchedule),
    ("escalation policy", EscalationPolicy),
    ("silence", Silence),
)


@dataclass(frozen=True, kw_only=True)
class ContentCount:
    """The number of items of one kind in a group or project."""

    #: Name of the kind in the singular.
    word: str
    #: Number of items. If there are more than COUNT_LIMIT items, it is COUNT_LIMIT + 1.
    count: int

    @property
    def plural(self) -> str:
        """Name of the kind in the plural."""
        return f"{self.word.removesuffix('y')}ies" if self.word.endswith("y") else f"{self.word}s"


def count_contents(namespace: Namespace, *, session: Session) -> tuple[ContentCount, ...]:
    """Return the number of items of each kind in a group or project.

    Kinds without items are omitted.
    """
    groups = select_subtree(select(Group.id).where(Group.id == namespace.group_id))
    projects = select(Project.id).where(
        Project.deleted_at.is_(None),
        Project.group_id.in_(groups) if namespace.group_id else Project.id == namespace.project_id,
    )
    below = select(literal(1)).where(
        Group.id.in_(groups), Group.id != namespace.group_id, Group.deleted_at.is_(None)
    )
    counted = [
        *((("subgroup", below), ("project", projects)) if namespace.group_id else ()),
        *((word, select(literal(1)).where(key.in_(projects))) for word, key in _PROJECT_CONTENTS),
        *(
            (
                word,
                select(literal(1)).where(_is_inside_namespace(table, groups, projects, namespace)),
            )
            for word, table in _NAMESPACE_CONTENTS
        ),
        ("image repository", _select_images(projects)),
        ("access token", _select_tokens(groups, projects, namespace)),
        ("direct member", _select_members(groups, projects, namespace)),
    ]
    found = (
        ContentCount(word=word, count=_count_up_to_limit(statement, session=session))
        for word, statement in counted
    )
    return tuple(each for each in found if each.count)


def _count_up_to_limit(statement: Select[int], *, session: Session) -> int:
    first = statement.limit(COUNT_LIMIT + 1).subquery()
    return session.scalar(select(func.count()).select_from(first)) or 0


def _select_images(projects: Select[int]) -> Select[int]:
    table = RegistryRepository
    there = or_(table.removed_at.is_(None), table.pushed_at > table.removed_at)
    return select(literal(1)).where(table.project_id.in_(projects), there)


def _select_tokens(groups: Select[int], projects: Select[int], namespace: Namespace) -> Select[int]:
    bots = select(Bot.user_id).where(_is_inside_namespace(Bot, groups, projects, namespace))
    return select(literal(1)).where(
        PersonalAccessToken.user_id.in_(bots), PersonalAccessToken.revoked_at.is_(None)
    )


def _select_members(
    groups: Select[int], projects: Select[int], namespace: Namespace
) -> Select[int]:
    is_bot = exists().where(Bot.user_id == Member.user_id)
    return select(literal(1)).where(
        _is_inside_namespace(Member, groups, projects, namespace), ~is_bot
    )


def _is_inside_namespace(
    table: type[Bot | EscalationPolicy | Member | OnCallSchedule | Silence],
    groups: Select[int],
    projects: Select[int],
    namespace: Namespace,
) -> ColumnElement[bool]:
    if namespace.group_id is None:
        return table.project_id == namespace.project_id
    return or_(table.group_id.in_(groups), table.project_id.in_(projects))
