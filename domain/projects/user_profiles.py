"""Profiles of users who share groups or projects with a viewer."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from domain.access.roles import Role
from domain.accounts.users import ERASED, IS_ACTIVE_HUMAN
from domain.core.database.pagination import MAX_ID
from domain.core.errors import NotFoundError
from domain.core.types.base import get_column_values
from domain.projects.paths import list_ancestor_paths
from domain.projects.views import Viewer
from domain.projects.visibility_sql import is_membership_active, select_subtree
from models import Group, Member, Project, User
from models.case_folding import build_search_text, fold_text

#: Maximum number of words in a search.
_MAX_SEARCH_WORDS = 10


@dataclass(frozen=True, kw_only=True)
class Membership:
    """A direct role in a group or a project."""

    path: str
    role: Role

    def has_common_namespace_with(self, other_namespaces: "OtherUserNamespaces") -> bool:
        """Return whether this role and a role of another user apply to a common namespace.

        The subgroups and projects of a group inherit the roles in the group.
        """
        return self.path in other_namespaces.around or not other_namespaces.paths.isdisjoint(
            list_ancestor_paths(self.path)
        )


class OtherUserNamespaces(NamedTuple):
    """The namespaces in which another user has a role.

    The sets make it fast to compare the roles of two users with thousands of roles.
    """

    paths: frozenset[str]
    #: Paths of the namespaces and of their ancestor groups.
    around: frozenset[str]

    @classmethod
    def from_memberships(cls, memberships: Iterable[Membership]) -> "OtherUserNamespaces":
        """Return the namespaces of the given memberships."""
        paths = frozenset(each.path for each in memberships)
        return cls(paths, paths | {above for path in paths for above in list_ancestor_paths(path)})


@dataclass(frozen=True, kw_only=True)
class UserProfileView:
    """A user's profile, with the roles that the viewer may see."""

    id: int
    username: str
    name: str
    #: Email address. None unless the viewer may see it.
    email: str | None
    #: Kind of the account: human, bot or service.
    kind: str
    is_you: bool
    created_at: datetime
    time_zone: str
    #: Direct roles in namespaces where the viewer is also a member. Administrators and the user see
    #: all roles.
    memberships: tuple[Membership, ...]


def get_user_profile(username: str, viewer: Viewer, *, session: Session) -> UserProfileView:
    """Return the profile of a user who shares a group or project with the viewer.

    Raise NotFoundError for other users, with a message that does not reveal whether the account
    exists.
    """
    wanted = fold_text(username).replace("\x00", "\ufffd")  # PostgreSQL rejects NUL characters.
    user = session.scalar(select(User).where(User.username_key == wanted, User.kind != ERASED))
    message = "User not found, or you do not share a group or project with this user."
    if user is None:
        raise NotFoundError(message)
    is_you = user.id == viewer.user_id
    sees_all = is_you or viewer.is_admin
    theirs = find_memberships(user.id, today=viewer.today, session=session)
    if not sees_all:
        theirs = _find_common_memberships(theirs, viewer, session=session)
    if not (theirs or sees_all):
        raise NotFoundError(message)
    return UserProfileView(
        **get_column_values(user, UserProfileView) | {"email": user.email if sees_all else None},
        is_you=is_you,
        memberships=theirs,
    )


class PersonSearchResult(NamedTuple):
    """The username and the name of a user in search results."""

    username: str
    name: str


def search_people(
    text: str, viewer: Viewer, *, most: int, session: Session
) -> tuple[PersonSearchResult, ...]:
    """Return up to `most` people with active accounts whose profiles the viewer may see.

    Every word of the text must be part of the username or the name.
    """
    names = (
        build_search_text(User.username, User.username_key),
        build_search_text(User.name, User.name_key),
    )
    wanted = select(User.username, User.name).where(
        IS_ACTIVE_HUMAN,
        *(
            or_(*(name.contains(word, autoescape=True) for name in names))
            for word in fold_text(text).split()[:_MAX_SEARCH_WORDS]
        ),
    )
    if not viewer.is_admin:
        shared = User.id.in_(_select_related_members(viewer, session=session))
        wanted = wanted.where(or_(User.id == viewer.user_id, shared))
    rows = session.execute(wanted.order_by(User.username_key).limit(most))
    return tuple(PersonSearchResult(row.username, row.name) for row in rows)


def _select_related_members(viewer: Viewer, *, session: Session) -> Select[int]:
    """Select the IDs of users with a role in a namespace of the viewer, or above or below it."""
    mine = OtherUserNamespaces.from_memberships(
        find_memberships(viewer.user_id or 0, today=viewer.today, session=session)
    )
    below = select_subtree(select(Group.id).where(Group.path.in_(mine.paths)))
    return (
        select(Member.user_id)
        .outerjoin(Group, Group.id == Member.group_id)
        .outerjoin(Project, Project.id == Member.project_id)
        .where(
            is_membership_active(viewer.today),
            or_(
                func.coalesce(Group.path, Project.path).in_(mine.around),
                Member.group_id.in_(below),
                Project.group_id.in_(below),
            ),
        )
    )


def is_user_visible(user_id: int, viewer: Viewer, *, session: Session) -> bool:
    """Return whether the user is the viewer, or shares a group or project with the viewer."""
    if user_id > MAX_ID:
        return False
    theirs = find_memberships(user_id, today=viewer.today, session=session)
    return user_id == viewer.user_id or bool(
        _find_common_memberships(theirs, viewer, session=session)
    )


def _find_common_memberships(
    theirs: tuple[Membership, ...], viewer: Viewer, *, session: Session
) -> tuple[Membership, ...]:
    """Return the memberships in namespaces where the viewer is also a member."""
    mine = OtherUserNamespaces.from_memberships(
        find_memberships(viewer.user_id or 0, today=viewer.today, session=session)
    )
    return tuple(each for each in theirs if each.has_common_namespace_with(mine))


def find_memberships(user_id: int, *, today: date, session: Session) -> tuple[Membership, ...]:
    """Return the current direct roles of an account, ordered by path."""
    path = func.coalesce(Group.path, Project.path).label("path")
    rows = session.execute(
        select(path, Member.role)
        .select_from(Member)
        .outerjoin(Group, Group.id == Member.group_id)
        .outerjoin(Project, Project.id == Member.project_id)
        .where(Member.user_id == user_id, is_membership_active(today))
        .order_by(path)
    )
    return tuple(Membership(path=row.path, role=Role(row.role)) for row in rows)
