"""What is recorded of groups and projects."""

from dataclasses import replace

from domain.access.actor import Work
from domain.audit.events import EventKind
from domain.projects.editing import Changes
from domain.projects.views import Namespace

_KINDS = {
    "group": (EventKind.GROUP_CREATED, EventKind.GROUP_CHANGED, EventKind.GROUP_DELETED),
    "project": (EventKind.PROJECT_CREATED, EventKind.PROJECT_CHANGED, EventKind.PROJECT_DELETED),
}


def record_created(work: Work, namespace: Namespace) -> None:
    """Record a new group or project."""
    work.record(_KINDS[namespace.resource_type][0], subject=namespace.path, place=namespace)


def record_edit(work: Work, namespace: Namespace, changes: Changes) -> str:
    """Record what was changed, if anything was, and return the path that is in force.

    A description may be long, and is left out.
    """
    path = changes["path"][1] if "path" in changes else namespace.path
    details: dict[str, object] = {"changed": " ".join(changes)}
    for name, (before, after) in changes.items():
        if name != "description":
            details |= {name: after, f"{name}_before": before}
    if changes:
        place = replace(namespace, path=path)
        kind = _KINDS[namespace.resource_type][1]
        work.record(kind, subject=path, place=place, details=details)
    return path


def record_released(work: Work, namespace: Namespace, path: str) -> None:
    """Record that others can have a former path now."""
    details = {"changed": "former paths", "released": path}
    kind = _KINDS[namespace.resource_type][1]
    work.record(kind, subject=namespace.path, place=namespace, details=details)


def record_deleted(work: Work, namespace: Namespace, *, projects: int | None = None) -> None:
    """Record a deleted project, or group with its number of projects."""
    details = {} if projects is None else {"projects": projects}
    kind = _KINDS[namespace.resource_type][2]
    work.record(kind, subject=namespace.path, place=namespace, details=details)
