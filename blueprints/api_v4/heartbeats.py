"""/api/v4/projects/:id/heartbeats: heartbeats, their URLs and their logs."""

from flask import Blueprint

from domain.database.paging import LARGEST_ID
from domain.heartbeats import heartbeats as domain
from domain.heartbeats import log
from domain.heartbeats.heartbeats import HeartbeatView
from domain.projects.views import ProjectView
from web.api.operations import Found, operation
from web.api.schemas.base import PagedQuery
from web.api.schemas.heartbeats import (
    Heartbeat,
    HeartbeatBody,
    HeartbeatChange,
    HeartbeatPing,
    HeartbeatQuery,
    HeartbeatUrl,
    HeartbeatWithUrl,
    UrlResetBody,
)
from web.extensions import db
from web.heartbeats import actions
from web.services import now

#: The converter refuses numbers that databases reject.
_ONE = f"/<int(max={LARGEST_ID}):heartbeat_id>"

heartbeats = Blueprint("heartbeats", __name__, url_prefix="/projects/<path:reference>/heartbeats")


@heartbeats.get("")
@operation("heartbeats.index", query=HeartbeatQuery, returns=Heartbeat)
def index(project: ProjectView, query: HeartbeatQuery) -> Found[Heartbeat]:
    """List the heartbeats of a project."""
    found = domain.list_heartbeats(project.id, query.part, session=db.session(), now=now())
    return Found.of(found, lambda each: _shown(project, each))


@heartbeats.post("")
@operation("heartbeats.create", body=HeartbeatBody, returns=HeartbeatWithUrl, status=201)
def create(project: ProjectView, body: HeartbeatBody) -> HeartbeatWithUrl:
    """Create a heartbeat."""
    made, url = actions.create(project, body.details)
    return HeartbeatWithUrl.with_url(made, actions.page_url(project, made.id), url)


@heartbeats.get(_ONE)
@operation("heartbeats.show", returns=Heartbeat)
def show(project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Show a heartbeat."""
    return _shown(project, actions.get(project, heartbeat_id))


@heartbeats.put(_ONE)
@operation("heartbeats.change", body=HeartbeatChange, returns=Heartbeat)
def change(project: ProjectView, heartbeat_id: int, body: HeartbeatChange) -> Heartbeat:
    """Change a heartbeat."""
    details = body.of(actions.get(project, heartbeat_id).details)
    return _shown(project, actions.change(project, heartbeat_id, details))


@heartbeats.delete(_ONE)
@operation("heartbeats.delete")
def delete(project: ProjectView, heartbeat_id: int) -> None:
    """Delete a heartbeat and its log; its open alert is resolved."""
    actions.remove(project, heartbeat_id)


@heartbeats.post(f"{_ONE}/pause")
@operation("heartbeats.pause", returns=Heartbeat)
def pause(project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Pause a heartbeat: pings are only logged, and its open alert is resolved."""
    return _shown(project, actions.pause(project, heartbeat_id))


@heartbeats.post(f"{_ONE}/resume")
@operation("heartbeats.resume", returns=Heartbeat)
def resume(project: ProjectView, heartbeat_id: int) -> Heartbeat:
    """Resume a heartbeat: the next ping is expected as if one had arrived now."""
    return _shown(project, actions.resume(project, heartbeat_id))


@heartbeats.get(f"{_ONE}/url")
@operation("heartbeats.url", returns=HeartbeatUrl).but(writes=True)
def url(project: ProjectView, heartbeat_id: int) -> HeartbeatUrl:
    """Show the URL of a heartbeat; the audit log records this."""
    found = actions.read_url(project, heartbeat_id)
    return HeartbeatUrl.of(found, actions.ping_url(found.clear))


@heartbeats.post(f"{_ONE}/reset_url")
@operation("heartbeats.reset_url", body=UrlResetBody, returns=HeartbeatUrl, status=201)
def reset_url(project: ProjectView, heartbeat_id: int, body: UrlResetBody) -> HeartbeatUrl:
    """Replace the URL of a heartbeat; the old one can stay valid for some time."""
    made = actions.reset_url(project, heartbeat_id, previous_for=body.previous_for)
    return HeartbeatUrl.of(made, actions.ping_url(made.clear))


@heartbeats.get(f"{_ONE}/pings")
@operation("heartbeats.pings", query=PagedQuery, returns=HeartbeatPing)
def pings(project: ProjectView, heartbeat_id: int, query: PagedQuery) -> Found[HeartbeatPing]:
    """List the pings in the log of a heartbeat, newest first."""
    actions.get(project, heartbeat_id)
    found = log.list_pings(project.id, heartbeat_id, query.part, session=db.session())
    return Found.of(found, HeartbeatPing.of)


def _shown(project: ProjectView, view: HeartbeatView) -> Heartbeat:
    return Heartbeat.of(view, actions.page_url(project, view.id))
