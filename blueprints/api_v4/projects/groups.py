"""/api/v4/groups: groups, the groups below them, and their projects."""

from dataclasses import replace

from flask import Blueprint

from blueprints.api_v4.projects.projects import checked_segment, present_path, present_projects
from domain.access.roles import Role
from domain.errors import ForbiddenError
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects import creation, deletion, moving
from domain.projects.access import get_group, get_group_for
from domain.projects.changes import created, deleted, edited
from domain.projects.editing import Changes, edit_group
from domain.projects.listing import GroupFilter, details_of_group, list_groups, list_projects
from domain.projects.paths import group_path
from domain.projects.transfers import keep_owned
from domain.projects.views import GroupView, Viewer
from domain.types.base import Found
from web.access.api_limits import Family
from web.api.description.described import refuses_with
from web.api.operations import operation
from web.api.schemas.projects.groups import (
    Accepted,
    Group,
    GroupBody,
    GroupChangeBody,
    GroupQuery,
    GroupTransferBody,
    TransferQuery,
)
from web.api.schemas.projects.projects import GroupProjectQuery, Project
from web.extensions import db
from web.http.audit_events import record_event
from web.http.routes import reserved_names
from web.services import now, settings

groups = Blueprint("groups", __name__, url_prefix="/groups")


@groups.get("")
@operation("groups.index", query=GroupQuery, returns=Group, limit=Family.GROUPS)
def index(viewer: Viewer, query: GroupQuery) -> Found[Group]:
    """List the groups that the caller can see."""
    return _list(query, query.wanted(), viewer)


@groups.post("")
@refuses_with(404)
@operation("groups.create", body=GroupBody, returns=Group, status=201)
def create(bearer: Bearer, viewer: Viewer, body: GroupBody) -> Group:
    """Create a group, of which the caller becomes the owner, or a subgroup."""
    session = db.session()
    above = _parent(body.parent_id, bearer, viewer)
    made = creation.create_group(
        f"{above.path}/{checked_segment(body.path)}" if above else checked_segment(body.path),
        reserved=reserved_names(),
        session=session,
        now=now(),
        words=creation.NamespaceWords(name=body.name, description=body.description),
    )
    if not bearer.is_bot:
        creation.make_owner(made, bearer.user_id, session=session, now=now())
    record_event(created(made))
    session.flush()  # the new role is read
    return _present(get_group(made.path, viewer, session=session))


@groups.get("/<string:reference>")
@operation("groups.show", returns=Group, limit=Family.GROUP)
def show(group: GroupView) -> Group:
    """Show a group."""
    return _present(group)


@groups.put("/<string:reference>")
@operation("groups.change", body=GroupChangeBody, returns=Group)
def change(group: GroupView, viewer: Viewer, body: GroupChangeBody) -> Group:
    """Change the name or the description of a group, and the last part of its path."""
    session = db.session()
    moved = (
        {}
        if body.path is None
        else moving.rename_group(
            group.id, body.path, reserved=reserved_names(), session=session, now=now()
        )
    )
    changes = {**moved, **edit_group(group.id, body.edit, session=session)}
    return _changed(group, changes, viewer)


@groups.post("/<string:reference>/transfer")
@refuses_with(404)
@operation("groups.transfer", body=GroupTransferBody, returns=Group, status=201)
def transfer(group: GroupView, bearer: Bearer, viewer: Viewer, body: GroupTransferBody) -> Group:
    """Move a group into another one in which the caller is a maintainer, or to the top level."""
    session = db.session()
    above = _parent(body.group_id, bearer, viewer)
    moved = moving.transfer_group(
        group.id,
        above.path if above else None,
        reserved=reserved_names(),
        session=session,
        now=now(),
    )
    place = replace(group.namespace, path=present_path(group.path, moved))
    keep_owned(place, bearer.user_id, session=session, now=now())
    return _changed(group, moved, viewer)


@groups.get("/<string:reference>/transfer_locations")
@operation("groups.transfer_locations", query=TransferQuery, returns=Group, limit=Family.GROUPS)
def transfer_locations(group: GroupView, viewer: Viewer, query: TransferQuery) -> Found[Group]:
    """List the groups that the caller can move a group into."""
    return _list(query, query.wanted(without=(group.id,)), viewer)


@groups.delete("/<string:reference>")
@operation("groups.delete", returns=Accepted, status=202)
def delete(group: GroupView) -> Accepted:
    """Delete a group with its subgroups and projects. It disappears immediately."""
    paths = deletion.delete_group(group.namespace, session=db.session(), now=now())
    record_event(deleted(group.namespace, projects=len(paths)))
    return Accepted()


@groups.get("/<string:reference>/subgroups")
@operation("groups.subgroups", query=GroupQuery, returns=Group, limit=Family.GROUPS)
def subgroups(group: GroupView, viewer: Viewer, query: GroupQuery) -> Found[Group]:
    """List the groups directly below a group."""
    return _list(query, query.wanted(parent_id=group.id), viewer)


@groups.get("/<string:reference>/descendant_groups")
@operation("groups.descendant_groups", query=GroupQuery, returns=Group, limit=Family.GROUPS)
def descendant_groups(group: GroupView, viewer: Viewer, query: GroupQuery) -> Found[Group]:
    """List all groups below a group."""
    return _list(query, query.wanted(below_id=group.id), viewer)


@groups.get("/<string:reference>/projects")
@operation("groups.projects", query=GroupProjectQuery, returns=Project, limit=Family.GROUP_PROJECTS)
def projects(group: GroupView, viewer: Viewer, query: GroupProjectQuery) -> Found[Project]:
    """List the projects of a group that the caller can see."""
    wanted = query.wanted(group_id=group.id, with_subgroups=query.include_subgroups)
    found = list_projects(wanted, query.part, viewer, session=db.session())
    return present_projects(found, query)


def _changed(group: GroupView, changes: Changes, viewer: Viewer) -> Group:
    path = present_path(group.path, changes)
    if changes:
        record_event(edited(replace(group.namespace, path=path), changes))
    db.session.flush()  # the new values are read
    return _present(get_group(path, viewer, session=db.session()))


def _list(query: GroupQuery | TransferQuery, wanted: GroupFilter, viewer: Viewer) -> Found[Group]:
    found = list_groups(wanted, query.part, viewer, session=db.session())
    base_url = settings().base_url
    return Found.of(found, lambda each: Group.of(each, base_url))


def _present(group: GroupView) -> Group:
    return Group.of(details_of_group(group, session=db.session()), settings().base_url)


def _parent(parent_id: int | None, bearer: Bearer, viewer: Viewer) -> GroupView | None:
    """Return the group to create one in, where the caller is a maintainer."""
    if parent_id is None:
        if bearer.is_bot:
            message = "A bot can only create groups below its own."
            raise ForbiddenError(message)
        return None
    session = db.session()
    path = group_path(str(parent_id), session=session)
    return get_group_for(path, viewer, at_least=Role.MAINTAINER, session=session)
