"""Roles that follow from groups at a provider.

Roles that were assigned here are kept. Only roles that a group at the provider gave change and end
with that group. The last owner of a group remains its owner.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.access.actor import Work
from domain.access.roles import Role
from domain.accounts.administration import change_account, get_account
from domain.accounts.identity_providers.types import GroupRole
from domain.accounts.types import AccountChangeBody
from domain.accounts.users import UserView
from domain.audit.events import EventKind
from domain.core.errors import InvalidError, NotFoundError
from domain.projects import members
from domain.projects.access import follow_to_group, namespace_of
from domain.projects.views import Namespace
from models import Group, Identity, IdentityProvider, IdentityRole, Member, User


class _Wanted(NamedTuple):
    namespace: Namespace
    role: Role


def follow_groups(
    work: Work, provider: IdentityProvider, identity: Identity, groups: frozenset[str] | None
) -> None:
    """Assign the roles of a user's groups at a provider, and revoke outdated ones.

    If the provider did not return the groups, nothing changes.
    """
    if groups is None:
        return
    unit, session = _as_provider(work, provider), work.session
    user = get_account(identity.user_id, session=session)
    wanted = _wanted(provider, groups, session=session)
    statement = select(IdentityRole).where(IdentityRole.identity_id == identity.id)
    given = {each.group_id: each for each in session.scalars(statement)}
    for group_id in sorted(wanted.keys() | given.keys()):
        with suppress(NotFoundError):  # The group was deleted in the meantime.
            if group_id in wanted:
                _give(unit, identity, user, wanted[group_id], given.get(group_id))
            else:
                _take(unit, user, given[group_id])
    _follow_administrators(unit, provider, identity, groups)


def take_back(work: Work, provider: IdentityProvider, identity: Identity) -> None:
    """Revoke all roles that the groups of an identity gave."""
    session = work.session
    statement = select(IdentityRole).where(IdentityRole.identity_id == identity.id)
    unit, user = _as_provider(work, provider), get_account(identity.user_id, session=session)
    for each in session.scalars(statement).all():
        with suppress(NotFoundError):
            _take(unit, user, each)
    _follow_administrators(unit, provider, identity, frozenset())


def _as_provider(work: Work, provider: IdentityProvider) -> Work:
    """Return the unit of work with the provider as actor, because the user may lack permissions."""
    return replace(work, actor=replace(work.actor, id=None, name=provider.title, is_admin=True))


def _wanted(
    provider: IdentityProvider, groups: frozenset[str], *, session: Session
) -> Mapping[int, _Wanted]:
    """Return the highest role for each local group, by group id."""
    found: dict[int, _Wanted] = {}
    for upstream, path, role in map(GroupRole.read, provider.group_roles):
        if upstream not in groups:
            continue
        with suppress(NotFoundError):
            namespace = follow_to_group(path, members.OPERATOR, session=session).namespace
            known = found.get(namespace.group_id or 0)
            if known is None or known.role < role:
                found[namespace.group_id or 0] = _Wanted(namespace, role)
    return found


def _membership(namespace: Namespace, user_id: int, work: Work) -> Member | None:
    """Lock the members of a namespace and return the user's current membership, or None."""
    members.lock_namespace(namespace, session=work.session)
    found = work.session.scalar(
        select(Member)
        .where(Member.user_id == user_id, members.is_here(namespace))
        .execution_options(populate_existing=True)
    )
    has_ended = found is not None and found.expires_at and found.expires_at <= work.now.date()
    return None if has_ended else found


def _give(
    work: Work, identity: Identity, user: UserView, wanted: _Wanted, mark: IdentityRole | None
) -> None:
    session, (namespace, role) = work.session, wanted
    present = _membership(namespace, user.id, work)
    if present is None:
        members.store_member(namespace, user, role, expires_at=None, session=session, now=work.now)
        members.record_joined(work, namespace, user, role)
        _mark(identity, namespace, role, mark, session=session)
    elif mark is not None and present.role != mark.role:
        session.delete(mark)  # The role was changed here since the provider gave it.
    elif mark is not None and present.role != role and _change(work, namespace, present, role):
        details = {"role": role.label, "before": Role(mark.role).label}
        members.record_member(
            work, EventKind.MEMBER_CHANGED, namespace, (user.id, user.username), **details
        )
        mark.role = int(role)


def _change(work: Work, namespace: Namespace, present: Member, role: Role) -> bool:
    """Change a role; return False for the last owner of the group."""
    by = members.OPERATOR
    try:
        members.change_role(namespace, present.id, role, by=by, session=work.session)
    except InvalidError:
        return False
    return True


def _mark(
    identity: Identity,
    namespace: Namespace,
    role: Role,
    mark: IdentityRole | None,
    *,
    session: Session,
) -> None:
    if mark is not None:
        mark.role = int(role)
        return
    session.add(IdentityRole(identity_id=identity.id, group_id=namespace.group_id, role=int(role)))


def _take(work: Work, user: UserView, mark: IdentityRole) -> None:
    session = work.session
    namespace = namespace_of(session.get_one(Group, mark.group_id))
    present = _membership(namespace, user.id, work)
    if present is not None and present.role == mark.role:
        try:
            members.remove_member(namespace, present.id, by=members.OPERATOR, session=session)
        except InvalidError:
            return  # This is the last owner.
        who = (user.id, user.username)
        members.record_member(work, EventKind.MEMBER_REMOVED, namespace, who)
    session.delete(mark)


def _follow_administrators(
    work: Work, provider: IdentityProvider, identity: Identity, groups: frozenset[str]
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
        work.record(EventKind.USER_CHANGED, subject=user.username, user_id=user.id, details=details)
