"""Audit events of groups, projects and their members."""

from dataclasses import dataclass
from datetime import date

from domain.access.roles import Role
from domain.accounts.users import UserView
from domain.audit.events import Event, EventKind
from domain.projects.editing import Changes
from domain.projects.member_types import MemberRole
from domain.projects.views import Namespace

_KINDS = {
    "group": (EventKind.GROUP_CREATED, EventKind.GROUP_CHANGED, EventKind.GROUP_DELETED),
    "project": (EventKind.PROJECT_CREATED, EventKind.PROJECT_CHANGED, EventKind.PROJECT_DELETED),
}


def created(namespace: Namespace) -> Event:
    """Return the audit event for a new group or project."""
    return Event(kind=_KINDS[namespace.resource_type][0], subject=namespace.path, place=namespace)


def edited(namespace: Namespace, changes: Changes) -> Event:
    """Return the audit event for changed settings; a description may be long, and is left out."""
    details: dict[str, object] = {"changed": " ".join(changes)}
    for name, (before, after) in changes.items():
        if name != "description":
            details |= {name: after, f"{name}_before": before}
    return Event(
        kind=_KINDS[namespace.resource_type][1],
        subject=namespace.path,
        place=namespace,
        details=details,
    )


def path_released(namespace: Namespace, path: str) -> Event:
    """Return the audit event for a former path that others can have now."""
    details = {"changed": "former paths", "released": path}
    return Event(
        kind=_KINDS[namespace.resource_type][1],
        subject=namespace.path,
        place=namespace,
        details=details,
    )


def deleted(namespace: Namespace, *, projects: int | None = None) -> Event:
    """Return the audit event for a deleted project, or a group with its number of projects."""
    details = {} if projects is None else {"projects": projects}
    return Event(
        kind=_KINDS[namespace.resource_type][2],
        subject=namespace.path,
        place=namespace,
        details=details,
    )


def archived(namespace: Namespace) -> Event:
    """Return the audit event for a project that takes no changes any more."""
    return Event(kind=EventKind.PROJECT_ARCHIVED, subject=namespace.path, place=namespace)


def unarchived(namespace: Namespace) -> Event:
    """Return the audit event for a project that takes changes again."""
    return Event(kind=EventKind.PROJECT_UNARCHIVED, subject=namespace.path, place=namespace)


@dataclass(frozen=True, kw_only=True)
class RoleChange:
    """A changed role of a member."""

    user: UserView
    before: Role
    after: Role


def joined(
    namespace: Namespace, user: UserView, role: Role, *, expires_at: date | None = None
) -> Event:
    """Return the audit event for a new member."""
    details = {"username": user.username, "role": role.label, **_ends(expires_at)}
    return Event(
        kind=EventKind.MEMBER_ADDED,
        user_id=user.id,
        subject=namespace.path,
        place=namespace,
        details=details,
    )


def changed(namespace: Namespace, change: RoleChange) -> Event:
    """Return the audit event for a changed role."""
    return Event(
        kind=EventKind.MEMBER_CHANGED,
        user_id=change.user.id,
        subject=namespace.path,
        place=namespace,
        details={
            "username": change.user.username,
            "role": change.after.label,
            "before": change.before.label,
        },
    )


def expired(path: str, user_id: int, username: str) -> Event:
    """Return the audit event for a role that has ended on its day."""
    return Event(
        kind=EventKind.MEMBER_EXPIRED,
        user_id=user_id,
        subject=path,
        details={"username": username},
    )


def given(namespace: Namespace, user: UserView, custom: MemberRole | None) -> Event:
    """Return the audit event for a custom role that was given or taken away."""
    return Event(
        kind=EventKind.MEMBER_CHANGED,
        user_id=user.id,
        subject=namespace.path,
        place=namespace,
        details={"username": user.username, "member_role": custom.name if custom else "none"},
    )


def end_changed(namespace: Namespace, user: UserView, expires_at: date | None) -> Event:
    """Return the audit event for a changed end of a role."""
    details = {"username": user.username, "expires_at": expires_at and expires_at.isoformat()}
    return Event(
        kind=EventKind.MEMBER_CHANGED,
        user_id=user.id,
        subject=namespace.path,
        place=namespace,
        details=details,
    )


def _ends(expires_at: date | None) -> dict[str, str]:
    return {} if expires_at is None else {"expires_at": expires_at.isoformat()}


def left(namespace: Namespace, user: UserView) -> Event:
    """Return the audit event for a removed member."""
    return Event(
        kind=EventKind.MEMBER_REMOVED,
        user_id=user.id,
        subject=namespace.path,
        place=namespace,
        details={"username": user.username},
    )


def invitation_event(kind: EventKind, namespace: Namespace, email: str, role: Role) -> Event:
    """Return the audit event for an invitation."""
    return Event(
        kind=kind,
        subject=namespace.path,
        place=namespace,
        details={"email": email, "role": role.label},
    )
