"""/api/v4/{projects,groups}/:id/members: members of one project or group."""

from flask import Blueprint, Response

from domain.database.paging import Listed, ListPart
from domain.errors import InvalidError, NotFoundError
from domain.projects import changes as events
from domain.projects import members as domain
from domain.projects.member_lists import MemberFilter, find_member_of_all, list_members
from domain.projects.member_roles import get_member_role
from domain.projects.member_types import MemberRole
from domain.projects.members import leave
from domain.projects.views import MemberView, Namespace, Viewer
from domain.types.base import Found
from web.access.api_limits import Family
from web.api.operations import operation
from web.api.schemas.projects.members import Member, MemberBody, MemberChangeBody, MemberQuery
from web.extensions import db
from web.http.audit_events import record_event
from web.http.json_responses import json_response
from web.services import now, settings

members = Blueprint(
    "members",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/members",
)


@members.get("")
@operation("members.index", query=MemberQuery, returns=Member, limit=Family.MEMBERS)
def index(namespace: Namespace, query: MemberQuery) -> Found[Member]:
    """List the direct members."""
    base_url = settings().base_url
    found = _matching(namespace, query.wanted(is_direct=True), query.part)
    return Found.of(found, lambda each: Member.direct(each, base_url))


@members.get("/all")
@operation("members.index_all", query=MemberQuery, returns=Member, limit=Family.MEMBERS)
def index_all(namespace: Namespace, query: MemberQuery) -> Found[Member]:
    """List all members, inherited ones as well, each once with the highest role."""
    base_url = settings().base_url
    found = _matching(namespace, query.wanted(is_direct=False), query.part)
    return Found.of(found, lambda each: Member.effective(each, base_url))


@members.get("/<int:user_id>")
@operation("members.show", returns=Member, limit=Family.MEMBERS)
def show(namespace: Namespace, user_id: int) -> Member:
    """Show a direct member."""
    return Member.direct(_get_direct(namespace, user_id), settings().base_url)


@members.get("/all/<int:user_id>")
@operation("members.show_of_all", returns=Member, limit=Family.MEMBERS)
def show_of_all(namespace: Namespace, user_id: int) -> Member:
    """Show a member, also an inherited one, with the highest role."""
    return Member.effective(_get(namespace, user_id), settings().base_url)


@members.post("")
@operation("members.create", body=MemberBody, returns=Member, status=201)
def create(namespace: Namespace, viewer: Viewer, body: MemberBody) -> Member | Response:
    """Add members: one, who is returned, or several."""
    session = db.session()
    logins = [*body.username, *(domain.login_of(each, session=session) for each in body.user_id)]
    if not logins:
        message = "user_id or username is missing"
        raise InvalidError(message, field="user_id")
    domain.check_day(body.expires_at, now().date())
    added = [_add(namespace, login, body, by=viewer) for login in logins]
    if len(added) > 1:
        return json_response({"status": "success"}, 201)
    return show_member(namespace, added[0])


@members.put("/<int:user_id>")
@operation("members.change", body=MemberChangeBody, returns=Member)
def change(namespace: Namespace, viewer: Viewer, user_id: int, body: MemberChangeBody) -> Member:
    """Change the role or the expiry date of a member."""
    session, member = db.session(), _get_direct(namespace, user_id)
    number = member.id or 0
    if body.access_level is not None and body.access_level != member.own_role:
        changed = domain.change_role(
            namespace, number, body.access_level, by=viewer, session=session
        )
        record_event(events.changed(namespace, changed))
    if "expires_at" in body.model_fields_set and body.expires_at != member.own_expires_at:
        user = domain.change_end(
            namespace, number, body.expires_at, by=viewer, session=session, today=now().date()
        )
        record_event(events.end_changed(namespace, user, body.expires_at))
    if "member_role_id" in body.model_fields_set:
        db.session.flush()  # a changed role ends the custom one
        member = _get_direct(namespace, user_id)
        _give_member_role(namespace, member, body.member_role_id, by=viewer)
    return show_member(namespace, user_id)


@members.delete("/<int:user_id>")
@operation("members.delete")
def delete(namespace: Namespace, viewer: Viewer, user_id: int) -> None:
    """Remove a member, or leave; inherited roles are kept.

    Removing others requires the Maintainer role.
    """
    number, session = _get_direct(namespace, user_id).id or 0, db.session()
    if user_id == viewer.user_id:
        user = leave(namespace, by=viewer, session=session)
    else:
        user = domain.remove_member(namespace, number, by=viewer, session=session)
    record_event(events.left(namespace, user))


def _add(namespace: Namespace, login: str, body: MemberBody, *, by: Viewer) -> int:
    session, role, day = db.session(), body.access_level, body.expires_at
    user = domain.add_member(namespace, login, role, by=by, session=session, now=now())
    if day is not None:
        number = domain.find_member(namespace, user.username, session=session)
        today = now().date()
        domain.change_end(namespace, number, day, by=by, session=session, today=today)
    record_event(events.joined(namespace, user, role, expires_at=day))
    if body.member_role_id is not None:
        member = _get_direct(namespace, user.id)
        _give_member_role(namespace, member, body.member_role_id, by=by)
    return user.id


def _give_member_role(
    namespace: Namespace, member: MemberView, role_id: int | None, *, by: Viewer
) -> None:
    """Give a member a custom role, or take it away; what they have already is no change."""
    now_given = member.own_custom_role.id if member.own_custom_role else None
    if role_id == now_given:
        return
    session = db.session()
    custom = None if role_id is None else _wanted_member_role(role_id)
    user = domain.give_member_role(namespace, member.id or 0, custom, by=by, session=session)
    record_event(events.given(namespace, user, custom))


def _wanted_member_role(role_id: int) -> MemberRole:
    try:
        return get_member_role(role_id, session=db.session())
    except NotFoundError as error:
        raise InvalidError(str(error), field="member_role_id") from error


def show_member(namespace: Namespace, user_id: int) -> Member:
    """Return a member as they are after a change."""
    db.session.flush()  # the new values are read
    return Member.direct(_get_direct(namespace, user_id), settings().base_url)


def _matching(namespace: Namespace, wanted: MemberFilter, part: ListPart) -> Listed[MemberView]:
    return list_members(
        namespace, wanted, part, viewer_id=None, session=db.session(), today=now().date()
    )


def _get(namespace: Namespace, user_id: int) -> MemberView:
    today = now().date()
    found = find_member_of_all(namespace, user_id, session=db.session(), today=today)
    if found is None:
        message = "Member not found."
        raise NotFoundError(message)
    return found


def _get_direct(namespace: Namespace, user_id: int) -> MemberView:
    found = _get(namespace, user_id)
    if found.own_role is None:
        message = "This member has no role of their own here."
        raise NotFoundError(message)
    return found
