"""Custom member roles of the instance: a role, and abilities that it adds.

A member with a custom role has its base role and these abilities, in the group or project of the
membership and in all below. Administrators create and delete them. Those who manage members give
them: a maintainer has every ability, so nobody gives what they do not have.
"""

from typing import Any

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from domain.access.roles import Ability
from domain.errors import InvalidError, NotFoundError
from domain.projects.member_types import MemberRole
from models import Member
from models import MemberRole as Row


def is_custom_role_of_member() -> ColumnElement[bool]:
    """Return the condition that joins a membership with its custom role, while that counts."""
    return (Row.id == Member.member_role_id) & (Row.base_role == Member.role)


def list_member_roles(*, session: Session) -> tuple[MemberRole, ...]:
    """Return all custom roles, the oldest first."""
    return tuple(_shown(each) for each in session.scalars(select(Row).order_by(Row.id)))


def get_member_role(role_id: int, *, session: Session) -> MemberRole:
    """Return a custom role, or raise NotFoundError."""
    found = session.get(Row, role_id)
    if found is None:
        message = "Member role not found."
        raise NotFoundError(message)
    return _shown(found)


def assign_member_role(member_id: int, role: MemberRole | None, *, session: Session) -> None:
    """Give a direct member a custom role, or take it away.

    The caller has checked that the member's role may be changed. Raises NotFoundError if the custom
    role was deleted meanwhile, and InvalidError unless the member has the role that it is based on.
    """
    if role is not None:
        _lock(role.id, session=session)
    statement = update(Member).where(Member.id == member_id)
    if role is not None:
        statement = statement.where(Member.role == int(role.base))
    changed = session.execute(
        statement.values(member_role_id=role.id if role else None).returning(Member.id)
    ).first()
    if changed is None and role is not None:
        message = f"The role “{role.name}” is for members with the role {role.base.label}."
        raise InvalidError(message, field="member_role_id")


def _lock(role_id: int, *, session: Session) -> None:
    """Keep others from deleting a role until the commit; raise NotFoundError if it is gone."""
    found = select(Row.id).where(Row.id == role_id)
    if session.scalar(found.with_for_update(read=True, key_share=True)) is None:
        message = "Member role not found."
        raise NotFoundError(message)


def _shown(row: Row) -> MemberRole:
    added: dict[str, Any] = {each.value: each in row.abilities for each in Ability}
    return MemberRole(
        id=row.id,
        name=row.name,
        description=row.description,
        base_access_level=row.base_role,
        created_at=row.created_at,
        **added,
    )
