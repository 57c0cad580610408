"""What a group or project holds, in numbers: what goes along when it is deleted."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, exists, func, literal, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from domain.projects.access import COUNT_LIMIT
from domain.projects.grants import subtree
from domain.projects.views import Namespace
from models import (
    Alert,
    Bot,
    Deployment,
    Environment,
    Group,
    Heartbeat,
    Incident,
    Integration,
    Member,
    OnCallSchedule,
    PersonalAccessToken,
    Project,
    ProjectRelease,
    RegistryRepository,
    Silence,
)

_OF_PROJECTS: tuple[tuple[str, InstrumentedAttribute[int]], ...] = (
    ("alert", Alert.project_id),
    ("incident", Incident.project_id),
    ("integration", Integration.project_id),
    ("heartbeat", Heartbeat.project_id),
    ("on-call schedule", OnCallSchedule.project_id),
    ("silence", Silence.project_id),
    ("environment", Environment.project_id),
    ("deployment", Deployment.project_id),
    ("release", ProjectRelease.project_id),
)


@dataclass(frozen=True, kw_only=True)
class Content:
    """How many of something there are."""

    #: In the singular.
    word: str
    #: Counted up to COUNT_LIMIT; one more stands for "or more".
    count: int

    @property
    def plural(self) -> str:
        """Return the word for several."""
        return f"{self.word.removesuffix('y')}ies" if self.word.endswith("y") else f"{self.word}s"


def contents_of(namespace: Namespace, *, session: Session) -> tuple[Content, ...]:
    """Return what a group or project holds, without what it has none of."""
    groups = subtree(select(Group.id).where(Group.id == namespace.group_id))
    projects = select(Project.id).where(
        Project.deleted_at.is_(None),
        Project.group_id.in_(groups) if namespace.group_id else Project.id == namespace.project_id,
    )
    counted = [
        *(_of_group(namespace, groups, projects) if namespace.group_id else ()),
        *((word, select(literal(1)).where(key.in_(projects))) for word, key in _OF_PROJECTS),
        ("image repository", _images(projects)),
        ("access token", _tokens(groups, projects, namespace)),
        ("direct member", _people(groups, projects, namespace)),
    ]
    found = (
        Content(word=word, count=_count(statement, session=session)) for word, statement in counted
    )
    return tuple(each for each in found if each.count)


def _count(statement: Select[int], *, session: Session) -> int:
    first = statement.limit(COUNT_LIMIT + 1).subquery()
    return session.scalar(select(func.count()).select_from(first)) or 0


def _of_group(
    namespace: Namespace, groups: Select[int], projects: Select[int]
) -> tuple[tuple[str, Select[int]], ...]:
    below = select(literal(1)).where(
        Group.id.in_(groups), Group.id != namespace.group_id, Group.deleted_at.is_(None)
    )
    return ("subgroup", below), ("project", projects)


def _images(projects: Select[int]) -> Select[int]:
    table = RegistryRepository
    there = or_(table.removed_at.is_(None), table.pushed_at > table.removed_at)
    return select(literal(1)).where(table.project_id.in_(projects), there)


def _tokens(groups: Select[int], projects: Select[int], namespace: Namespace) -> Select[int]:
    bots = select(Bot.user_id).where(_is_inside(Bot, groups, projects, namespace))
    return select(literal(1)).where(
        PersonalAccessToken.user_id.in_(bots), PersonalAccessToken.revoked_at.is_(None)
    )


def _people(groups: Select[int], projects: Select[int], namespace: Namespace) -> Select[int]:
    is_bot = exists().where(Bot.user_id == Member.user_id)
    return select(literal(1)).where(_is_inside(Member, groups, projects, namespace), ~is_bot)


def _is_inside(
    table: type[Bot] | type[Member],
    groups: Select[int],
    projects: Select[int],
    namespace: Namespace,
) -> ColumnElement[bool]:
    if namespace.group_id is None:
        return table.project_id == namespace.project_id
    return or_(table.group_id.in_(groups), table.project_id.in_(projects))
