"""What administrators can do with custom member roles."""

from sqlalchemy import select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.access.roles import Role, with_included
from domain.audit.events import EventKind
from domain.database.upsert import insert_into
from domain.errors import ConflictError, InvalidError, TakenError
from domain.projects import member_roles
from domain.projects.member_types import MemberRole, NewMemberRole
from domain.types.base import Found, OffsetQuery
from models import Member
from models import MemberRole as Row
from models.folding import fold

#: The highest role that a custom one can be based on: an owner has everything anyway.
HIGHEST_BASE = Role.MAINTAINER
LONGEST_NAME, LONGEST_DESCRIPTION = 255, 1000


@question("member_roles.index")
def list_member_roles(work: Work, query: OffsetQuery) -> Found[MemberRole]:
    """List the member roles of the instance."""
    found = member_roles.list_member_roles(session=work.session)
    return Found(items=found[query.offset : query.offset + query.size], total=len(found))


@action("member_roles.create")
def create_member_role(work: Work, new: NewMemberRole) -> MemberRole:
    """Create a member role.

    Raises InvalidError, or TakenError.
    """
    name = new.name.strip()
    _check(name, new)
    insert = insert_into(Row, session=work.session).values(
        name=name,
        name_key=fold(name),
        description=new.description,
        base_role=int(new.base_access_level),
        abilities=sorted(with_included(new.abilities)),
        created_at=work.now,
    )
    added = work.session.execute(insert.on_conflict_do_nothing().returning(Row.id)).first()
    if added is None:
        message = f"A member role “{name}” already exists."
        raise TakenError(message, field="name")
    made = member_roles.get_member_role(added.id, session=work.session)
    _record(work, EventKind.MEMBER_ROLE_CREATED, made)
    return made


@action("member_roles.delete")
def delete_member_role(work: Work, role_id: int) -> MemberRole:
    """Delete a member role that no member has.

    Raises NotFoundError, or ConflictError while a member has it.
    """
    # The lock keeps others from giving it meanwhile; SQLite has one writer.
    row = work.session.scalar(select(Row).where(Row.id == role_id).with_for_update())
    found = member_roles.get_member_role(role_id, session=work.session)
    in_use = select(Member.id).where(Member.member_role_id == role_id).limit(1)
    if work.session.scalar(in_use) is not None:
        message = f"Members have the role “{found.name}”: give them another one first."
        raise ConflictError(message)
    work.session.delete(row)
    _record(work, EventKind.MEMBER_ROLE_REMOVED, found)
    return found


@question("group_member_roles.index")
def list_group_member_roles(work: Work, query: OffsetQuery) -> Found[MemberRole]:
    """List the member roles of the instance; gone from release 17.0 on."""
    return list_member_roles(work, query)


@action("group_member_roles.create")
def create_group_member_role(work: Work, new: NewMemberRole) -> MemberRole:
    """Create a member role; gone from release 17.0 on."""
    return create_member_role(work, new)


@action("group_member_roles.delete")
def delete_group_member_role(work: Work, role_id: int) -> MemberRole:
    """Delete a member role that no member has; gone from release 17.0 on."""
    return delete_member_role(work, role_id)


def _check(name: str, new: NewMemberRole) -> None:
    if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        message = f"name must be one line of 1 to {LONGEST_NAME} characters."
        raise InvalidError(message, field="name")
    if len(new.description) > LONGEST_DESCRIPTION:
        message = f"description can have at most {LONGEST_DESCRIPTION} characters."
        raise InvalidError(message, field="description")
    if new.base_access_level > HIGHEST_BASE:
        message = f"base_access_level can be at most {int(HIGHEST_BASE)}."
        raise InvalidError(message, field="base_access_level")


def _record(work: Work, kind: EventKind, role: MemberRole) -> None:
    details = {
        "member_role_id": role.id,
        "base_role": role.base.label,
        "permissions": ", ".join(sorted(role.abilities)),
    }
    work.record(kind, subject=role.name, details=details)
