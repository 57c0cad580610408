"""Custom member roles, each of which adds abilities to a base role.

A member has the base role and the abilities in the group or project of the membership, and in the
subgroups and projects below it. Administrators create and delete custom roles for the instance.
Before release 17.0, owners of a group can also create and delete custom roles for the group, which
only members of the group and of its subgroups and projects can have.

Maintainers and owners assign custom roles. They already have every ability, so they cannot assign
an ability that they do not have.
"""

from typing import Any

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.access.roles import Ability, Role, add_included_abilities
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import build_session_insert
from domain.core.errors import ConflictError, InvalidError, NotFoundError, TakenError
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage, OffsetQuery
from domain.projects.member_types import MemberRole, NewMemberRole
from domain.projects.paths import list_ancestor_paths
from domain.projects.views import GroupView, Namespace
from models import Group, Member
from models import MemberRole as Row
from models.case_folding import fold_text

#: Highest base role of a custom role. Owners already have every ability.
MAX_BASE_ROLE = Role.MAINTAINER
MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH = 255, 1000


def is_custom_role_of_member() -> ColumnElement[bool]:
    """Return an SQL condition that joins a membership with its custom role.

    A custom role counts only while its base role is the member's role.
    """
    return (Row.id == Member.member_role_id) & (Row.base_role == Member.role)


def find_all_member_roles(*, session: Session) -> tuple[MemberRole, ...]:
    """Return all custom roles, oldest first."""
    return tuple(_build_member_role(each) for each in session.scalars(select(Row).order_by(Row.id)))


def find_usable_member_roles(namespace: Namespace, *, session: Session) -> tuple[MemberRole, ...]:
    """Return the custom roles that members of a group or project can have, oldest first."""
    found = session.scalars(select(Row).where(is_role_usable_in(namespace)).order_by(Row.id))
    return tuple(_build_member_role(each) for each in found)


def is_role_usable_in(namespace: Namespace) -> ColumnElement[bool]:
    """Return an SQL condition that matches custom roles for members of a group or project.

    These are the roles of the instance, of the group and of its ancestor groups.
    """
    paths = [fold_text(each) for each in (*list_ancestor_paths(namespace.path), namespace.path)]
    around = select(Group.id).where(Group.path_key.in_(paths))
    return Row.group_id.is_(None) | Row.group_id.in_(around)


def get_usable_member_role(role_id: int, namespace: Namespace, *, session: Session) -> MemberRole:
    """Return a custom role that members of a group or project can have.

    Raise NotFoundError if there is no such role with this ID.
    """
    found = session.scalar(select(Row).where(Row.id == role_id, is_role_usable_in(namespace)))
    if found is None:
        raise NotFoundError("Member role not found.")
    return _build_member_role(found)


def get_member_role(role_id: int, *, session: Session) -> MemberRole:
    """Return a custom role by its ID.

    Raise NotFoundError if there is no role with this ID.
    """
    found = session.get(Row, role_id)
    if found is None:
        raise NotFoundError("Member role not found.")
    return _build_member_role(found)


def assign_member_role(member_id: int, role: MemberRole | None, *, session: Session) -> None:
    """Set or remove the custom role of a direct member.

    The caller must have checked that the member's role may be changed. Raise NotFoundError if the
    custom role was deleted in the meantime. Raise InvalidError unless the member has the base role
    of the custom role.
    """
    if role is not None:
        _lock_role(role.id, session=session)
    statement = update(Member).where(Member.id == member_id)
    if role is not None:
        statement = statement.where(Member.role == int(role.base_role))
    changed = session.execute(
        statement.values(member_role_id=role.id if role else None).returning(Member.id)
    ).first()
    if changed is None and role is not None:
        message = (
            f'The role "{role.name}" is only for members with the {role.base_role.label} role.'
        )
        raise InvalidError(message, field="member_role_id")


def _lock_role(role_id: int, *, session: Session) -> None:
    """Lock a custom role until the commit, so that it cannot be deleted.

    Raise NotFoundError if the role was already deleted.
    """
    found = select(Row.id).where(Row.id == role_id)
    if session.scalar(found.with_for_update(read=True, key_share=True)) is None:
        raise NotFoundError("Member role not found.")


def _build_member_role(row: Row) -> MemberRole:
    added: dict[str, Any] = {each.value: each in row.abilities for each in Ability}
    return MemberRole(
        **get_column_values(row, MemberRole), base_access_level=row.base_role, **added
    )


@read_action("member_roles.index")
def list_member_roles(work: UnitOfWork, query: OffsetQuery) -> ListPage[MemberRole]:
    """List the member roles of the instance."""
    found = find_all_member_roles(session=work.session)
    return ListPage(items=found[query.offset : query.offset + query.page_size], total=len(found))


@action("member_roles.create")
def create_member_role(work: UnitOfWork, new: NewMemberRole) -> MemberRole:
    """Create a member role for the instance.

    Raise InvalidError for an invalid value, and TakenError for a name in use.
    """
    return _create_role(work, new, None)


def _create_role(
    work: UnitOfWork, new_member_role: NewMemberRole, group: GroupView | None
) -> MemberRole:
    name = new_member_role.name.strip()
    _check_new_role(name, new_member_role)
    insert = build_session_insert(Row, session=work.session).values(
        group_id=group.id if group else None,
        name=name,
        name_key=fold_text(name),
        description=new_member_role.description,
        base_role=int(new_member_role.base_access_level),
        abilities=sorted(add_included_abilities(new_member_role.abilities)),
        created_at=work.now,
    )
    added = work.session.execute(insert.on_conflict_do_nothing().returning(Row.id)).first()
    if added is None:
        raise TakenError(f'The member role "{name}" already exists.', field="name")
    made = get_member_role(added.id, session=work.session)
    _record_event(work, EventKind.MEMBER_ROLE_CREATED, made, group)
    return made


@action("member_roles.delete")
def delete_member_role(work: UnitOfWork, role_id: int) -> MemberRole:
    """Delete an unused member role.

    Raise NotFoundError if the role does not exist, and ConflictError while a member has the role.
    """
    return _delete_role(work, role_id, None)


def _delete_role(work: UnitOfWork, role_id: int, group: GroupView | None) -> MemberRole:
    # The lock prevents other requests from assigning the role in the meantime. SQLite needs no
    # lock, since it has only one writer.
    row = work.session.scalar(select(Row).where(Row.id == role_id).with_for_update())
    found = get_member_role(role_id, session=work.session)
    in_use = select(Member.id).where(Member.member_role_id == role_id).limit(1)
    if work.session.scalar(in_use) is not None:
        message = f'Members still have the role "{found.name}". Give them another role first.'
        raise ConflictError(message)
    work.session.delete(row)
    _record_event(work, EventKind.MEMBER_ROLE_REMOVED, found, group)
    return found


@read_action("group_member_roles.index")
def list_group_member_roles(
    work: UnitOfWork, group: GroupView, query: OffsetQuery
) -> ListPage[MemberRole]:
    """List the member roles of a group (until release 17.0)."""
    own = select(Row).where(Row.group_id == group.id).order_by(Row.id)
    found = tuple(_build_member_role(each) for each in work.session.scalars(own))
    return ListPage(items=found[query.offset : query.offset + query.page_size], total=len(found))


@action("group_member_roles.create")
def create_group_member_role(work: UnitOfWork, group: GroupView, new: NewMemberRole) -> MemberRole:
    """Create a member role in a group (until release 17.0)."""
    return _create_role(work, new, group)


@action("group_member_roles.delete")
def delete_group_member_role(work: UnitOfWork, group: GroupView, role_id: int) -> MemberRole:
    """Delete an unused member role of a group (until release 17.0).

    Raise NotFoundError if the group has no such role, or ConflictError if the role is in use.
    """
    if get_member_role(role_id, session=work.session).group_id != group.id:
        raise NotFoundError("Member role not found.")
    return _delete_role(work, role_id, group)


def _check_new_role(name: str, new_member_role: NewMemberRole) -> None:
    if not name.isprintable() or not 0 < len(name) <= MAX_NAME_LENGTH:
        message = f"The name must be a single line of 1 to {MAX_NAME_LENGTH} characters."
        raise InvalidError(message, field="name")
    if len(new_member_role.description) > MAX_DESCRIPTION_LENGTH:
        message = f"The description can have at most {MAX_DESCRIPTION_LENGTH:,} characters."
        raise InvalidError(message, field="description")
    if new_member_role.base_access_level > MAX_BASE_ROLE:
        message = f"`base_access_level` can be at most {int(MAX_BASE_ROLE)}."
        raise InvalidError(message, field="base_access_level")


def _record_event(
    work: UnitOfWork, kind: EventKind, role: MemberRole, group: GroupView | None
) -> None:
    details = {
        **({"group": group.path} if group else {}),
        "member_role_id": role.id,
        "base_role": role.base_role.label,
        "permissions": ", ".join(sorted(role.abilities)),
    }
    work.record_audit_event(kind, subject=role.name, details=details)
