"""Creates groups and projects."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.access.actor import Work
from domain.access.roles import Role
from domain.accounts.names import check_path
from domain.accounts.users import BOT
from domain.errors import InvalidError, NotFoundError, TakenError
from domain.projects.access import get_group_for
from domain.projects.editing import checked_name, checked_visibility
from domain.projects.paths import ancestors, group_path, parent
from domain.projects.views import GroupView, Namespace, viewer_of
from models import AlertCounter, FormerPath, Group, Member, Project, User
from models.folding import fold

#: Until the transaction ends; the prefix keeps it apart from locks of other words.
_CLAIM = text("SELECT pg_advisory_xact_lock(hashtext(:key))")


@dataclass(frozen=True)
class ReservedNames:
    """The names that top-level groups must not have, in lower case: a policy."""

    names: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class NamespaceWords:
    """What a new group or project is called, besides its path."""

    #: The last part of the path if it is empty.
    name: str = ""
    description: str = ""


def check_valid(path: str, *, reserved: frozenset[str]) -> None:
    """Raise InvalidError for a path that no group or project can have."""
    try:
        check_path(path, reserved=reserved)
    except ValueError as error:
        raise InvalidError(str(error), field="path") from error


def check_free(path: str, *, session: Session, own: Namespace | None = None) -> None:
    """Raise TakenError for a path that a group or a project has, had, or gets at this moment.

    Its own former path is free for `own`.
    """
    if session.get_bind().dialect.name == "postgresql":
        # Two tables, and a unique index of each. SQLite has one writer.
        session.execute(_CLAIM, {"key": f"path {fold(path)}"})
    for table in (Group, Project):
        taken = select(table.id).where(table.path_key == fold(path))
        if session.scalar(taken) is not None:
            message = f"“{path}” already exists."
            raise TakenError(message, field="path")
    former = session.scalar(select(FormerPath).where(FormerPath.path_key == fold(path)))
    if former is not None and not is_former_of(former, own):
        raise former_path_taken(path)


def is_former_of(former: FormerPath, own: Namespace | None) -> bool:
    """Return whether a former path is that of one's own group or project."""
    return own is not None and (former.group_id, former.project_id) == (
        own.group_id,
        own.project_id,
    )


def former_path_taken(path: str) -> TakenError:
    """Return the error for a path that leads to another group or project."""
    message = (
        f"“{path}” is a former path of another group or project, whose old URLs still lead there. "
        "Its owner can release it."
    )
    return TakenError(message, field="path")


def get_parent(path: str, *, session: Session) -> Group:
    """Return the group of a full path, or raise NotFoundError.

    It cannot be deleted, nor any group above it, before the caller commits.
    """
    keys = [fold(each) for each in (*ancestors(path), path)]
    locked = session.scalars(
        select(Group)
        .where(Group.path_key.in_(keys), Group.deleted_at.is_(None))
        .order_by(Group.id)
        .with_for_update(read=True, key_share=True)
        .execution_options(populate_existing=True)
    )
    group = next((each for each in locked if each.path_key == keys[-1]), None)
    if group is None:
        message = f"Group “{path}” not found."
        raise NotFoundError(message)
    return group


def create_group(
    path: str,
    *,
    reserved: frozenset[str],
    session: Session,
    now: datetime,
    words: NamespaceWords | None = None,
) -> Namespace:
    """Store a group; the groups above it must exist."""
    clean, words = path.strip("/"), words or NamespaceWords()
    above, last = parent(clean), clean.rpartition("/")[2]
    check_valid(clean, reserved=reserved)
    holder = get_parent(above, session=session) if above else None
    check_free(clean, session=session)
    group = Group(
        parent_id=holder.id if holder else None,
        name=checked_name(words.name or last),
        # With the stored spelling of the parent's path.
        path=f"{holder.path}/{last}" if holder else clean,
        description=words.description,
        created_at=now,
    )
    _store(group, session=session)
    return Namespace(group_id=group.id, path=group.path)


def create_project(
    path: str,
    *,
    visibility: str,
    reserved: frozenset[str],
    session: Session,
    now: datetime,
    words: NamespaceWords | None = None,
) -> Namespace:
    """Store a project `GROUP/NAME`, with the counter that numbers its alerts."""
    clean, words = path.strip("/"), words or NamespaceWords()
    above = parent(clean)
    if above is None:
        message = "A project belongs to a group: enter GROUP/NAME."
        raise InvalidError(message, field="path")
    check_valid(clean, reserved=reserved)
    group = get_parent(above, session=session)
    check_free(clean, session=session)
    last = clean.rpartition("/")[2]
    project = Project(
        group_id=group.id,
        name=checked_name(words.name or last),
        path=f"{group.path}/{last}",
        description=words.description,
        visibility=checked_visibility(visibility),
        created_at=now,
    )
    _store(project, session=session)
    session.add(AlertCounter(project_id=project.id, last_iid=0))
    return Namespace(project_id=project.id, path=project.path)


def make_owner(namespace: Namespace, user_id: int, *, session: Session, now: datetime) -> None:
    """Make a user the owner of a new group or project."""
    session.add(
        Member(
            user_id=user_id,
            group_id=namespace.group_id,
            project_id=namespace.project_id,
            role=int(Role.OWNER),
            created_at=now,
        )
    )


def make_maker_owner(work: Work, namespace: Namespace) -> None:
    """Make who creates a group or project its owner, except the command line and bots."""
    if work.actor.id is not None and not is_bot(work):
        make_owner(namespace, work.actor.id, session=work.session, now=work.now)


def is_bot(work: Work) -> bool:
    """Return whether the account of an access token acts."""
    return work.session.scalar(select(User.kind).where(User.id == work.actor.id)) == BOT


def get_maintained_group(work: Work, reference: int | str) -> GroupView:
    """Return the group with an id or path to put something in, where the actor is a maintainer.

    Raises NotFoundError or ForbiddenError.
    """
    path = group_path(str(reference), session=work.session)
    return get_group_for(path, viewer_of(work), at_least=Role.MAINTAINER, session=work.session)


def checked_segment(path: str) -> str:
    """Return the last part of a path, or raise InvalidError for more than that."""
    if "/" in path:
        message = "path must be a single name; the group has its own parameter."
        raise InvalidError(message, field="path")
    return path


def reserved_names(rules: Iterable[str]) -> frozenset[str]:
    """Return the first parts of URL rules, in lower case: no path may begin with one."""
    firsts = (rule.strip("/").split("/")[0].lower() for rule in rules)
    return frozenset(first for first in firsts if first and not first.startswith("<"))


def _store(row: Group | Project, *, session: Session) -> None:
    """Store a group or project to get its id; raise TakenError if the path was taken."""
    try:
        with session.begin_nested():  # the error page still queries the database
            session.add(row)
    except IntegrityError as error:
        message = f"“{row.path}” already exists."
        raise TakenError(message, field="path") from error
