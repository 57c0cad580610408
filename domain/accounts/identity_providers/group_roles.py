"""Roles that users receive through their groups at a provider.

Only these roles are changed or revoked when the groups change. Roles assigned in Gatebell are not
affected. The last owner of a group remains its owner.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.roles import Role
from domain.accounts.administration import change_account, get_account
from domain.accounts.identity_providers.types import GroupRoleMapping
from domain.accounts.types import AccountChangeBody
from domain.accounts.users import UserView
from domain.audit.events import EventKind
from domain.core.errors import InvalidError, NotFoundError
from domain.projects import members
from domain.projects.access import build_namespace, resolve_group
from domain.projects.views import Namespace
from models import Group, Identity, IdentityProvider, IdentityRole, Member, User


class _TargetRole(NamedTuple):
    namespace: Namespace
    role: Role


def sync_group_roles(
    work: UnitOfWork, provider: IdentityProvider, identity: Identity, groups: frozenset[str] | None
) -> None:
    """Assign the roles for a user's groups at a provider, and revoke outdated roles.

    If the provider did not return the groups, nothing changes.
    """
    if groups is None:
        return
    unit, session = _build_provider_unit_of_work(work, provider), work.session
    user = get_account(identity.user_id, session=session)
    wanted = _find_target_roles(provider, groups, session=session)
    statement = select(IdentityRole).where(IdentityRole.identity_id == identity.id)
    given = {each.group_id: each for each in session.scalars(statement)}
    for group_id in sorted(wanted.keys() | given.keys()):
        with suppress(NotFoundError):  # The group was deleted in the meantime.
            if group_id in wanted:
                _assign_role(unit, identity, user, wanted[group_id], given.get(group_id))
            else:
                _revoke_role(unit, user, given[group_id])
    _sync_administrator_status(unit, provider, identity, groups)


def revoke_group_roles(work: UnitOfWork, provider: IdentityProvider, identity: Identity) -> None:
    """Revoke all roles that an identity received through its groups."""
    session = work.session
    statement = select(IdentityRole).where(IdentityRole.identity_id == identity.id)
    unit, user = (
        _build_provider_unit_of_work(work, provider),
        get_account(identity.user_id, session=session),
    )
    for each in session.scalars(statement).all():
        with suppress(NotFoundError):
            _revoke_role(unit, user, each)
    _sync_administrator_status(unit, provider, identity, frozenset())


def _build_provider_unit_of_work(work: UnitOfWork, provider: IdentityProvider) -> UnitOfWork:
    """Return a unit of work whose actor is the provider.

    The user might not have permission to change the roles.
    """
    return replace(work, actor=replace(work.actor, id=None, name=provider.title, is_admin=True))


def _find_target_roles(
    provider: IdentityProvider, groups: frozenset[str], *, session: Session
) -> Mapping[int, _TargetRole]:
    """Return the highest role for the given provider groups in each local group, by group ID."""
    found: dict[int, _TargetRole] = {}
    for upstream, path, role in map(GroupRoleMapping.from_text, provider.group_roles):
        if upstream not in groups:
            continue
        with suppress(NotFoundError):
            namespace = resolve_group(path, members.OPERATOR_VIEWER, session=session).namespace
            known = found.get(namespace.group_id or 0)
            if known is None or known.role < role:
                found[namespace.group_id or 0] = _TargetRole(namespace, role)
    return found


def _lock_membership(namespace: Namespace, user_id: int, work: UnitOfWork) -> Member | None:
    """Lock the members of a namespace and return the user's current membership, or None."""
    members.lock_namespace_members(namespace, session=work.session)
    found = work.session.scalar(
        select(Member)
        .where(Member.user_id == user_id, members.is_direct_membership(namespace))
        .execution_options(populate_existing=True)
    )
    has_ended = found is not None and found.expires_at and found.expires_at <= work.now.date()
    return None if has_ended else found


def _assign_role(
    work: UnitOfWork,
    identity: Identity,
    user: UserView,
    target_role: _TargetRole,
    identity_role: IdentityRole | None,
) -> None:
    session, (namespace, role) = work.session, target_role
    present = _lock_membership(namespace, user.id, work)
    if present is None:
        members.store_member(namespace, user, role, expires_at=None, session=session, now=work.now)
        members.record_member_added(work, namespace, user, role)
        _store_identity_role(identity, namespace, role, identity_role, session=session)
    elif identity_role is not None and present.role != identity_role.role:
        session.delete(identity_role)  # The role was changed in Gatebell in the meantime.
    elif (
        identity_role is not None
        and present.role != role
        and _change_role(work, namespace, present, role)
    ):
        details = {"role": role.label, "before": Role(identity_role.role).label}
        members.record_member_event(
            work, EventKind.MEMBER_CHANGED, namespace, (user.id, user.username), **details
        )
        identity_role.role = int(role)


def _change_role(work: UnitOfWork, namespace: Namespace, member: Member, role: Role) -> bool:
    """Change the role of a member, and return whether it was changed.

    The role of the last owner of a group is not changed.
    """
    by = members.OPERATOR_VIEWER
    try:
        members.change_role(namespace, member.id, role, viewer=by, session=work.session)
    except InvalidError:
        return False
    return True


def _store_identity_role(
    identity: Identity,
    namespace: Namespace,
    role: Role,
    identity_role: IdentityRole | None,
    *,
    session: Session,
) -> None:
    if identity_role is not None:
        identity_role.role = int(role)
        return
    session.add(IdentityRole(identity_id=identity.id, group_id=namespace.group_id, role=int(role)))


def _revoke_role(work: UnitOfWork, user: UserView, identity_role: IdentityRole) -> None:
    session = work.session
    namespace = build_namespace(session.get_one(Group, identity_role.group_id))
    present = _lock_membership(namespace, user.id, work)
    if present is not None and present.role == identity_role.role:
        try:
            members.remove_member(
                namespace, present.id, viewer=members.OPERATOR_VIEWER, session=session
            )
        except InvalidError:
            return  # This is the last owner.
        who = (user.id, user.username)
        members.record_member_event(work, EventKind.MEMBER_REMOVED, namespace, who)
    session.delete(identity_role)


def _sync_administrator_status(
    work: UnitOfWork, provider: IdentityProvider, identity: Identity, groups: frozenset[str]
) -> None:
    is_meant = bool(provider.administrators_group) and provider.administrators_group in groups
    user = work.session.get_one(User, identity.user_id)
    if user.is_admin if is_meant else not identity.gave_administrator:
        return
    try:
        changed = change_account(work, user.id, AccountChangeBody(admin=is_meant))
    except InvalidError:
        return  # This is the last administrator.
    identity.gave_administrator = is_meant
    if changed:
        details = {"administrator": is_meant, "provider": provider.slug}
        work.record_audit_event(
            EventKind.USER_CHANGED, subject=user.username, user_id=user.id, details=details
        )
