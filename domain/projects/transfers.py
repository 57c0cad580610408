"""What a transfer changes: whose roles, and what stays behind."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, func, or_, select, true
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.accounts.users import BOT
from domain.errors import ConflictError
from domain.projects.creation import make_owner
from domain.projects.grants import is_in_force, subtree
from domain.projects.members import has_owner, is_here
from domain.projects.paths import ancestors
from domain.projects.views import Namespace, Viewer
from models import Group, Member, Project, RegistryRepository, User
from models.folding import fold

#: So many changed roles are shown by name.
_MOST_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class ChangedRole:
    """A member whose highest role here a transfer changes."""

    user_id: int
    username: str
    name: str
    is_bot: bool
    before: Role | None
    after: Role | None

    @property
    def is_lowered(self) -> bool:
        """Return whether the member may do less afterwards."""
        return (self.after or 0) < (self.before or 0)


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """What becomes of the members and images of a group or project at another path."""

    #: Those who lose something first, in the order of their user names.
    roles: tuple[ChangedRole, ...]
    role_count: int
    #: Repositories of the container registry, which keep their names.
    image_count: int

    @property
    def hidden_count(self) -> int:
        """Return how many changed roles are not among those shown."""
        return self.role_count - len(self.roles)


def explain_transfer(
    namespace: Namespace, new_parent: str | None, viewer: Viewer, *, session: Session
) -> Transfer:
    """Return what moving a group or project into another group, or to the top, changes."""
    here = _roles(is_here(namespace), viewer, session=session)
    before = _roles(_in_groups(ancestors(namespace.path)), viewer, session=session)
    above = (*ancestors(new_parent), new_parent) if new_parent else ()
    after = _roles(_in_groups(above), viewer, session=session)
    changed = {
        user_id: (_highest(here, before, user_id), _highest(here, after, user_id))
        for user_id in {*before, *after}
    }
    changed = {key: roles for key, roles in changed.items() if roles[0] != roles[1]}
    named = _named(changed, session=session)
    ordered = sorted(named, key=lambda each: (not each.is_lowered, each.username.lower()))
    return Transfer(
        roles=tuple(ordered[:_MOST_SHOWN]),
        role_count=len(ordered),
        image_count=_count_images(namespace, session=session),
    )


def keep_owned(
    namespace: Namespace, user_id: int | None, *, session: Session, now: datetime
) -> None:
    """Make who moved a group to the top its owner if it has none any more.

    Raises ConflictError for the command line, which is nobody.
    """
    if has_owner(namespace.path, true(), session=session):
        return
    if user_id is None:
        message = f"{namespace.path} would have no owner: give somebody in it the role first."
        raise ConflictError(message, field="group_id")
    own = select(Member).where(Member.user_id == user_id, is_here(namespace))
    member = session.scalar(own)
    if member is None:
        make_owner(namespace, user_id, session=session, now=now)
    else:
        member.role, member.expires_at, member.member_role_id = int(Role.OWNER), None, None


def _in_groups(paths: Iterable[str]) -> ColumnElement[bool]:
    keys = [fold(path) for path in paths]
    return Member.group_id.in_(select(Group.id).where(Group.path_key.in_(keys)))


def _roles(where: ColumnElement[bool], viewer: Viewer, *, session: Session) -> dict[int, Role]:
    rows = session.execute(
        select(Member.user_id, func.max(Member.role))
        .where(where, is_in_force(viewer.today))
        .group_by(Member.user_id)
    )
    return {user_id: Role(role) for user_id, role in rows}


def _highest(here: dict[int, Role], above: dict[int, Role], user_id: int) -> Role | None:
    return max(
        (role for role in (here.get(user_id), above.get(user_id)) if role is not None), default=None
    )


def _named(
    changed: dict[int, tuple[Role | None, Role | None]], *, session: Session
) -> list[ChangedRole]:
    rows = session.execute(
        select(User.id, User.username, User.name, User.kind).where(User.id.in_(changed))
    )
    return [
        ChangedRole(
            user_id=row.id,
            username=row.username,
            name=row.name,
            is_bot=row.kind == BOT,
            before=changed[row.id][0],
            after=changed[row.id][1],
        )
        for row in rows
    ]


def _count_images(namespace: Namespace, *, session: Session) -> int:
    """Return how many repositories of the container registry are below a group or in a project."""
    projects = select(Project.id).where(Project.id == namespace.project_id)
    if namespace.group_id is not None:
        groups = subtree(select(Group.id).where(Group.id == namespace.group_id))
        projects = select(Project.id).where(
            Project.group_id.in_(groups), Project.deleted_at.is_(None)
        )
    table = RegistryRepository
    there = or_(table.removed_at.is_(None), table.pushed_at > table.removed_at)
    counted = select(func.count(table.id)).where(table.project_id.in_(projects), there)
    return session.scalar(counted) or 0
