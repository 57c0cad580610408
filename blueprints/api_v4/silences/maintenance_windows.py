"""/api/v4/projects/:id/maintenance_windows: when alerts page nobody."""

from flask import Blueprint

from domain.audit.events import Actor, EventKind
from domain.database.paging import ListPart
from domain.projects.views import ProjectView
from domain.silences import windows as domain
from web.alerts.silences import record_window
from web.api.operations import Found, operation
from web.api.schemas.silences.maintenance_windows import (
    MaintenanceWindow,
    WindowBody,
    WindowChange,
    WindowQuery,
)
from web.extensions import db
from web.services import now

maintenance_windows = Blueprint(
    "maintenance_windows", __name__, url_prefix="/projects/<path:reference>/maintenance_windows"
)


@maintenance_windows.get("")
@operation("maintenance_windows.index", query=WindowQuery, returns=MaintenanceWindow)
def index(project: ProjectView, query: WindowQuery) -> Found[MaintenanceWindow]:
    """List maintenance windows."""
    part = ListPart(size=query.size, offset=query.offset, is_descending=True)
    found = domain.numbered_windows(project.id, part, session=db.session())
    moment = now()
    return Found.of(found, lambda view: MaintenanceWindow.of(view, moment))


@maintenance_windows.get("/<int:window_id>")
@operation("maintenance_windows.show", returns=MaintenanceWindow)
def show(project: ProjectView, window_id: int) -> MaintenanceWindow:
    """Show a maintenance window."""
    return MaintenanceWindow.of(
        domain.get_window(project.id, window_id, session=db.session()), now()
    )


@maintenance_windows.post("")
@operation("maintenance_windows.create", body=WindowBody, returns=MaintenanceWindow, status=201)
def create(project: ProjectView, body: WindowBody, actor: Actor) -> MaintenanceWindow:
    """Create a maintenance window."""
    made = domain.create_window(project.id, body.wanted, by=actor, session=db.session(), now=now())
    record_window(EventKind.MAINTENANCE_WINDOW_CREATED, project.path, made)
    return MaintenanceWindow.of(made, now())


@maintenance_windows.put("/<int:window_id>")
@operation("maintenance_windows.edit", body=WindowChange, returns=MaintenanceWindow)
def edit(project: ProjectView, window_id: int, body: WindowChange) -> MaintenanceWindow:
    """Change a maintenance window."""
    session = db.session()
    wanted = body.wanted(domain.get_window(project.id, window_id, session=session))
    changed = domain.change_window(project.id, window_id, wanted, session=session, now=now())
    record_window(EventKind.MAINTENANCE_WINDOW_CHANGED, project.path, changed)
    return MaintenanceWindow.of(changed, now())


@maintenance_windows.delete("/<int:window_id>")
@operation("maintenance_windows.delete")
def delete(project: ProjectView, window_id: int) -> None:
    """Delete a maintenance window."""
    session = db.session()
    window = domain.get_window(project.id, window_id, session=session)
    domain.delete_window(project.id, window_id, session=session)
    record_window(EventKind.MAINTENANCE_WINDOW_DELETED, project.path, window)
