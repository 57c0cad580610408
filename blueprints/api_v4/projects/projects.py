"""/api/v4/projects: projects, their settings, archive and deletion."""

from dataclasses import replace

from flask import Blueprint

from domain.access.roles import Role
from domain.accounts.names import as_segment
from domain.database.paging import Listed
from domain.errors import InvalidError
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects import creation, deletion, editing, moving
from domain.projects.access import get_group_for, get_project
from domain.projects.changes import archived, created, deleted, edited, unarchived
from domain.projects.editing import Changes
from domain.projects.listing import (
    ProjectDetails,
    details_of_project,
    list_groups,
    list_projects,
)
from domain.projects.paths import group_path
from domain.projects.views import ProjectView, Viewer
from domain.types.base import Found
from web.access.api_limits import Family
from web.api.description.described import refuses_with
from web.api.operations import operation
from web.api.repositories import repository_of
from web.api.schemas.projects.groups import Accepted, Group, TransferQuery
from web.api.schemas.projects.projects import (
    Project,
    ProjectBody,
    ProjectChangeBody,
    ProjectQuery,
    ProjectTransferBody,
)
from web.extensions import db
from web.http.audit_events import record_event
from web.http.routes import reserved_names
from web.services import now, settings

projects = Blueprint("projects", __name__, url_prefix="/projects")


@projects.get("")
@operation("projects.index", query=ProjectQuery, returns=Project, limit=Family.PROJECTS)
def index(viewer: Viewer, query: ProjectQuery) -> Found[Project]:
    """List the projects that the caller can see."""
    found = list_projects(query.wanted(), query.part, viewer, session=db.session())
    return present_projects(found, query)


@projects.post("")
@refuses_with(404)
@operation("projects.create", body=ProjectBody, returns=Project, status=201)
def create(bearer: Bearer, viewer: Viewer, body: ProjectBody) -> Project:
    """Create a project in a group in which the caller is a maintainer."""
    session = db.session()
    holder = group_path(str(body.namespace_id), session=session)
    group = get_group_for(holder, viewer, at_least=Role.MAINTAINER, session=session)
    path = checked_segment(body.path) if body.path else _segment_of(body.name)
    made = creation.create_project(
        f"{group.path}/{path}",
        visibility=body.visibility,
        reserved=reserved_names(),
        session=session,
        now=now(),
        words=creation.NamespaceWords(name=body.name, description=body.description),
    )
    editing.edit_project(made.project_id or 0, body.parts(), by=viewer, session=session)
    if not bearer.is_bot:
        creation.make_owner(made, bearer.user_id, session=session, now=now())
    record_event(created(made))
    return _reread(made.path, viewer)


@projects.get("/<string:reference>")
@operation("projects.show", returns=Project, limit=Family.PROJECT)
def show(project: ProjectView, viewer: Viewer) -> Project:
    """Show a project."""
    return _present(details_of_project(project, viewer, session=db.session()))


@projects.put("/<string:reference>")
@operation("projects.change", body=ProjectChangeBody, returns=Project)
def change(project: ProjectView, viewer: Viewer, body: ProjectChangeBody) -> Project:
    """Change the settings of a project, and the last part of its path."""
    session = db.session()
    moved = (
        {}
        if body.path is None
        else moving.rename_project(project.id, body.path, session=session, now=now())
    )
    edits = editing.edit_project(project.id, body.edit(), by=viewer, session=session)
    changes = {**moved, **edits}
    path = present_path(project.path, moved)
    if changes:
        record_event(edited(replace(project.namespace, path=path), changes))
    return _reread(path, viewer)


@projects.put("/<string:reference>/transfer")
@refuses_with(404)
@operation("projects.transfer", body=ProjectTransferBody, returns=Project)
def transfer(project: ProjectView, viewer: Viewer, body: ProjectTransferBody) -> Project:
    """Move a project into another group, in which the caller is a maintainer."""
    session = db.session()
    target = group_path(str(body.namespace), session=session)
    group = get_group_for(target, viewer, at_least=Role.MAINTAINER, session=session)
    moved = moving.transfer_project(project.id, group.path, session=session, now=now())
    path = present_path(project.path, moved)
    record_event(edited(replace(project.namespace, path=path), moved))
    return _reread(path, viewer)


@projects.get("/<string:reference>/transfer_locations")
@operation("projects.transfer_locations", query=TransferQuery, returns=Group, limit=Family.GROUPS)
def transfer_locations(project: ProjectView, viewer: Viewer, query: TransferQuery) -> Found[Group]:
    """List the groups that the caller can move a project into."""
    wanted = query.wanted(without=(project.group_id,))
    found = list_groups(wanted, query.part, viewer, session=db.session())
    return Found.of(found, lambda each: Group.of(each, settings().base_url))


@projects.delete("/<string:reference>")
@operation("projects.delete", returns=Accepted, status=202)
def delete(project: ProjectView) -> Accepted:
    """Delete a project. It disappears immediately; its data is removed in the background."""
    deletion.delete_project(project.namespace, session=db.session(), now=now())
    record_event(deleted(project.namespace))
    return Accepted()


@projects.post("/<string:reference>/archive")
@operation("projects.archive", returns=Project, status=201)
def archive(project: ProjectView, viewer: Viewer) -> Project:
    """Archive a project: it accepts no changes, pushes or alerts."""
    if editing.archive(project.id, session=db.session(), now=now()):
        record_event(archived(project.namespace))
    return _reread(project.path, viewer)


@projects.post("/<string:reference>/unarchive")
@operation("projects.unarchive", returns=Project, status=201)
def unarchive(project: ProjectView, viewer: Viewer) -> Project:
    """Unarchive a project: it accepts changes, pushes and alerts again."""
    if editing.unarchive(project.id, session=db.session()):
        record_event(unarchived(project.namespace))
    return _reread(project.path, viewer)


def present_projects(found: Listed[ProjectDetails], query: ProjectQuery) -> Found[Project]:
    """Present a part of a list of projects."""
    return Found.of(found, _simple if query.simple else _present)


def checked_segment(path: str) -> str:
    """Return the last part of a path, or raise InvalidError for more than that."""
    if "/" in path:
        message = "path must be a single name; the group has its own parameter."
        raise InvalidError(message, field="path")
    return path


def present_path(path: str, moved: Changes) -> str:
    """Return the path after a move, or the same without one."""
    return moved["path"][1] if "path" in moved else path


def _segment_of(name: str) -> str:
    path = as_segment(name)
    if not path:
        message = "path is missing, and cannot be derived from the name."
        raise InvalidError(message, field="path")
    return path


def _reread(path: str, viewer: Viewer) -> Project:
    session = db.session()
    session.flush()  # the new values and roles are read
    project = get_project(path, viewer, session=session)
    return _present(details_of_project(project, viewer, session=session))


def _present(found: ProjectDetails) -> Project:
    repository = repository_of(found.project)
    return Project.of(found, settings().base_url, repository)


def _simple(found: ProjectDetails) -> Project:
    return Project.simple(found, settings().base_url, repository_of(found.project))
