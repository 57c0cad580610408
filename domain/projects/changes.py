"""Audit events of groups and projects."""

from domain.audit.events import Event, EventKind
from domain.projects.editing import Changes
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
