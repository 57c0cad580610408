"""Groups whose members may use an application.

An application without allowed groups is open to all users.
"""

from collections.abc import Sequence

from sqlalchemy import Date, bindparam, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.core.errors import InvalidError, NotFoundError
from domain.oauth.context import OAuthContext
from domain.projects.access import get_group
from domain.projects.paths import list_ancestor_paths
from domain.projects.views import get_viewer
from domain.projects.visibility_sql import is_membership_active
from models import Group, Member
from models.case_folding import fold_text

_MEMBER_GROUPS_QUERY = (
    select(Group.path_key)
    .join(Member, Member.group_id == Group.id)
    .where(
        Member.user_id == bindparam("user_id"), is_membership_active(bindparam("today", type_=Date))
    )
)
_GROUP_PATH_QUERY = select(Group.path).where(
    Group.id == bindparam("group_id"), Group.deleted_at.is_(None)
)


def is_in_allowed_groups(
    group_ids: Sequence[int] | None, user_id: int, context: OAuthContext
) -> bool:
    """Return whether a user may use an application with these allowed groups.

    Members of a parent group count as members. Deleted groups have no members, so deleting a group
    never gives more users access.
    """
    if group_ids is None:
        return True
    values = {"user_id": user_id, "today": context.now.date()}
    mine = {row[0] for row in context.run_write(_MEMBER_GROUPS_QUERY, values)}
    paths = [
        row[0]
        for each in group_ids
        for row in context.run_write(_GROUP_PATH_QUERY, {"group_id": each})
    ]
    return any(
        fold_text(each) in mine for path in paths for each in (*list_ancestor_paths(path), path)
    )


def find_allowed_group_ids(paths: Sequence[str], work: UnitOfWork) -> list[int] | None:
    """Return the IDs of the groups with these paths, or None if there are no paths.

    Raise InvalidError for a group that the actor cannot see.
    """
    found = []
    for path in dict.fromkeys(paths):
        try:
            group = get_group(path, get_viewer(work), session=work.session)
        except NotFoundError as error:
            message = f"Group {path[:100]} not found, or you do not have access."
            raise InvalidError(message, field="allowed_groups") from error
        found.append(group.id)
    return sorted(found) or None


def find_allowed_group_paths(group_ids: Sequence[int], *, session: Session) -> tuple[str, ...]:
    """Return the sorted paths of the groups with these IDs, without deleted groups."""
    is_wanted = Group.id.in_(group_ids), Group.deleted_at.is_(None)
    return tuple(session.scalars(select(Group.path).where(*is_wanted).order_by(Group.path)))
