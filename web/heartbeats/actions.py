"""What maintainers do with heartbeats on pages, by the API and by command, with audit events."""

from datetime import timedelta

from flask import url_for

from domain.audit.events import Event, EventKind
from domain.database.locks import release_locks
from domain.durations import duration_text
from domain.heartbeats import heartbeats as domain
from domain.heartbeats import keys
from domain.heartbeats.heartbeats import HeartbeatDetails, HeartbeatView
from domain.heartbeats.keys import HeartbeatKey
from domain.heartbeats.settling import settle
from domain.heartbeats.states import HeartbeatState
from domain.projects.views import ProjectView
from web.extensions import db
from web.http.audit_events import record_event
from web.http.public_urls import public_url
from web.services import now, services, settings


def get(project: ProjectView, heartbeat_id: int) -> HeartbeatView:
    """Return a heartbeat of a project, or raise NotFoundError."""
    return domain.get_heartbeat(project.id, heartbeat_id, session=db.session(), now=now())


def create(project: ProjectView, details: HeartbeatDetails) -> tuple[HeartbeatView, str]:
    """Create a heartbeat; return it with its URL."""
    made = domain.create_heartbeat(
        project.id,
        details,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    _record("created", project, made.heartbeat)
    return made.heartbeat, ping_url(made.key)


def change(project: ProjectView, heartbeat_id: int, details: HeartbeatDetails) -> HeartbeatView:
    """Change what a maintainer chooses."""
    changed = domain.change_heartbeat(
        project.id, heartbeat_id, details, session=db.session(), now=now()
    )
    _record("changed", project, changed)
    return changed


def pause(project: ProjectView, heartbeat_id: int) -> HeartbeatView:
    """Expect nothing for now, and resolve the open alert."""
    before = get(project, heartbeat_id)
    paused = domain.pause_heartbeat(project.id, heartbeat_id, session=db.session(), now=now())
    if before.state is not HeartbeatState.PAUSED:
        _record("paused", project, paused)
    _settle(heartbeat_id)
    return get(project, heartbeat_id)


def resume(project: ProjectView, heartbeat_id: int) -> HeartbeatView:
    """Expect pings again."""
    before = get(project, heartbeat_id)
    resumed = domain.resume_heartbeat(project.id, heartbeat_id, session=db.session(), now=now())
    if before.state is HeartbeatState.PAUSED:
        _record("resumed", project, resumed)
    return resumed


def remove(project: ProjectView, heartbeat_id: int) -> HeartbeatView:
    """Resolve the open alert and delete the heartbeat; return what it was."""
    before = get(project, heartbeat_id)
    domain.pause_heartbeat(project.id, heartbeat_id, session=db.session(), now=now())
    _settle(heartbeat_id)
    domain.delete_heartbeat(project.id, heartbeat_id, session=db.session())
    _record("deleted", project, before)
    return before


def read_url(project: ProjectView, heartbeat_id: int) -> HeartbeatKey:
    """Return the secret part of the URL, and record that somebody read it."""
    found = key_of(project, heartbeat_id)
    heartbeat = get(project, heartbeat_id)
    kind = EventKind.HEARTBEAT_URL_READ
    record_event(Event(kind=kind, subject=heartbeat.name, details={"project": project.path}))
    return found


def key_of(project: ProjectView, heartbeat_id: int) -> HeartbeatKey:
    """Return the secret part of the URL."""
    return keys.key_of(
        project.id,
        heartbeat_id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )


def reset_url(project: ProjectView, heartbeat_id: int, *, previous_for: timedelta) -> HeartbeatKey:
    """Replace the URL; the old one is accepted for a time, or not at all."""
    made = keys.reset_key(
        project.id,
        heartbeat_id,
        previous_for=previous_for,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    old = f"valid for {duration_text(previous_for)}" if previous_for else "no longer valid"
    _record(f"URL replaced; the old one: {old}", project, get(project, heartbeat_id))
    return made


def ping_url(key: str) -> str:
    """Return the URL that the job of a heartbeat requests."""
    return f"{settings().base_url}/-/ping/{key}"


def page_url(project: ProjectView, heartbeat_id: int) -> str:
    """Return the absolute URL of the page of a heartbeat."""
    path = project.path
    return public_url(url_for("heartbeats.show", project_path=path, heartbeat_id=heartbeat_id))


def _settle(heartbeat_id: int) -> None:
    """Open or resolve the alert through the kept connections, after a commit of the session."""
    release_locks(db.session())
    settle(heartbeat_id, connection=services().connections, now=now())


def _record(change: str, project: ProjectView, heartbeat: HeartbeatView) -> None:
    details = {"change": change, "project": project.path}
    kind = EventKind.HEARTBEAT_CHANGED
    record_event(Event(kind=kind, subject=heartbeat.name, details=details))
