"""Custom member roles of the instance: a role, and abilities that it adds.

A member with a custom role has its base role and these abilities, in the group or project of the
membership and in all below. Administrators create and delete them. Those who manage members give
them: a maintainer has every ability, so nobody gives what they do not have.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from domain.access.abilities import Ability, known_abilities, with_included
from domain.access.roles import Role
from domain.database.upsert import insert_into
from domain.errors import ConflictError, InvalidError, NotFoundError, TakenError
from models import Member, MemberRole
from models.folding import fold

#: The highest role that a custom one can be based on: an owner has everything anyway.
HIGHEST_BASE = Role.MAINTAINER
LONGEST_NAME, LONGEST_DESCRIPTION = 255, 1000


@dataclass(frozen=True, kw_only=True)
class MemberRoleDetails:
    """A custom role to create."""

    name: str
    description: str
    base: Role
    abilities: frozenset[Ability]


@dataclass(frozen=True, kw_only=True)
class MemberRoleView:
    """A custom role."""

    id: int
    name: str
    description: str
    base: Role
    abilities: frozenset[Ability]
    created_at: datetime


def is_custom_role_of_member() -> ColumnElement[bool]:
    """Return the condition that joins a membership with its custom role, while that counts."""
    return (MemberRole.id == Member.member_role_id) & (MemberRole.base_role == Member.role)


def list_member_roles(*, session: Session) -> tuple[MemberRoleView, ...]:
    """Return all custom roles, the oldest first."""
    return tuple(
        _view(each) for each in session.scalars(select(MemberRole).order_by(MemberRole.id))
    )


def get_member_role(role_id: int, *, session: Session) -> MemberRoleView:
    """Return a custom role, or raise NotFoundError."""
    found = session.get(MemberRole, role_id)
    if found is None:
        message = "Member role not found."
        raise NotFoundError(message)
    return _view(found)


def create_member_role(
    details: MemberRoleDetails, *, session: Session, now: datetime
) -> MemberRoleView:
    """Create a custom role; raise InvalidError, or TakenError."""
    name = details.name.strip()
    if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        message = f"name must be one line of 1 to {LONGEST_NAME} characters."
        raise InvalidError(message, field="name")
    if len(details.description) > LONGEST_DESCRIPTION:
        message = f"description can have at most {LONGEST_DESCRIPTION} characters."
        raise InvalidError(message, field="description")
    if details.base > HIGHEST_BASE:
        message = f"base_access_level can be at most {int(HIGHEST_BASE)}."
        raise InvalidError(message, field="base_access_level")
    insert = insert_into(MemberRole, session=session).values(
        name=name,
        name_key=fold(name),
        description=details.description,
        base_role=int(details.base),
        abilities=_names(with_included(details.abilities)),
        created_at=now,
    )
    added = session.execute(insert.on_conflict_do_nothing().returning(MemberRole.id)).first()
    if added is None:
        message = f"A member role “{name}” already exists."
        raise TakenError(message, field="name")
    return get_member_role(added.id, session=session)


def delete_member_role(role_id: int, *, session: Session) -> MemberRoleView:
    """Delete a custom role and return it; raise ConflictError while a member has it."""
    # The lock keeps others from giving it meanwhile; SQLite has one writer.
    row = session.scalar(select(MemberRole).where(MemberRole.id == role_id).with_for_update())
    found = get_member_role(role_id, session=session)
    in_use = select(Member.id).where(Member.member_role_id == role_id).limit(1)
    if session.scalar(in_use) is not None:
        message = f"Members have the role “{found.name}”: give them another one first."
        raise ConflictError(message)
    session.delete(row)
    session.flush()
    return found


def assign_member_role(member_id: int, role: MemberRoleView | None, *, session: Session) -> None:
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
    found = select(MemberRole.id).where(MemberRole.id == role_id)
    if session.scalar(found.with_for_update(read=True, key_share=True)) is None:
        message = "Member role not found."
        raise NotFoundError(message)


def _view(row: MemberRole) -> MemberRoleView:
    return MemberRoleView(
        id=row.id,
        name=row.name,
        description=row.description,
        base=Role(row.base_role),
        abilities=known_abilities(row.abilities),
        created_at=row.created_at,
    )


def _names(abilities: Iterable[Ability]) -> list[str]:
    return sorted(each.value for each in abilities)
