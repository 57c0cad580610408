"""Finds groups and projects by their paths, and members by name."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.users import get_user
from domain.core.errors import NotFoundError
from domain.projects.access import build_namespace
from domain.projects.members import is_direct_membership
from domain.projects.views import Namespace
from models import Group, Member, Project
from models.case_folding import fold_text


def get_namespace(path: str, *, session: Session) -> Namespace:
    """Return the group or project of a full path.

    Raise NotFoundError if none has the path.
    """
    wanted = fold_text(path)
    group = session.scalar(
        select(Group).where(Group.path_key == wanted, Group.deleted_at.is_(None))
    )
    project = session.scalar(
        select(Project).where(Project.path_key == wanted, Project.deleted_at.is_(None))
    )
    found = group or project
    if found is None:
        raise NotFoundError(path)
    return build_namespace(found)


def find_member(namespace: Namespace, login: str, *, session: Session) -> int:
    """Return the id of a user's membership.

    Raise NotFoundError if the user is not a member.
    """
    user = get_user(login, session=session)
    number = session.scalar(
        select(Member.id).where(Member.user_id == user.id, is_direct_membership(namespace))
    )
    if number is None:
        raise NotFoundError(login)
    return number
