"""/api/v4/{projects,groups}/:id/access_tokens: access tokens of one project or group."""

from dataclasses import dataclass, replace

from flask import Blueprint, Response

from domain.accounts.roles import Role
from domain.audit.events import EventKind
from domain.errors import ForbiddenError, InvalidError
from domain.oauth.personal_tokens import resource_tokens as domain
from domain.oauth.personal_tokens.made_by_applications import (
    check_may_rotate,
    find_parent_authorization,
)
from domain.oauth.personal_tokens.resource_tokens import ResourceToken, TokenRequest
from domain.oauth.personal_tokens.tokens import NotPersonalError
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.access import get_group_for, get_project_for
from domain.projects.references import group_path, project_path
from domain.projects.views import Namespace, Viewer
from web.access.marks import bearer as with_bearer
from web.api import parameters as read
from web.api.offset_pages import offset_response, requested_page
from web.api.rotation import rotating_bearer
from web.api.token_parameters import (
    ROTATED_FOR,
    one_time_secret_response,
    token_details,
    token_expiry,
    token_filter,
    token_order,
    token_query,
)
from web.extensions import db
from web.http.audit_events import record_event
from web.http.json_responses import json_response
from web.services import now, services

resource_tokens = Blueprint("resource_tokens", __name__)
_ALL = "/<any(projects, groups):kind>/<path:reference>/access_tokens"
_ONE = f"{_ALL}/<int:token_id>"
_READING = ("api", "read_api", "read")


@dataclass(frozen=True, kw_only=True)
class TokenScope:
    """The project or group of the request, and the role that the caller has in it."""

    namespace: Namespace
    role: Role


@resource_tokens.get(_ALL)
@with_bearer(*_READING)
def index(bearer: Bearer, kind: str, reference: str) -> Response:
    """List the tokens of a project or a group."""
    namespace = _managed(kind, reference, bearer).namespace
    given, wanted_page = token_query(), requested_page()
    found = domain.list_resource_tokens(
        token_filter(given, namespace=namespace),
        namespace,
        session=db.session(),
        now=now(),
        sort=token_order(given),
        offset=wanted_page.offset,
        limit=wanted_page.size,
    )
    return offset_response([each.as_json() for each in found.items], wanted_page, total=found.total)


@resource_tokens.post(_ALL)
@with_bearer("api")
def create(bearer: Bearer, kind: str, reference: str) -> Response:
    """Create a token, and the bot that it acts as."""
    scope, given = _managed(kind, reference, bearer), read.all_parameters()
    if bearer.is_bot:
        message = "A bot makes no access tokens."
        raise ForbiddenError(message)
    level = read.whole_number(given, "access_level")
    details = replace(
        token_details(given), parent=find_parent_authorization(bearer, session=db.session())
    )
    wanted = TokenRequest(details=details, role=_role(level), granted_by=scope.role)
    made = domain.create_resource_token(
        scope.namespace, wanted, session=db.session(), keyring=services().keyring, now=now()
    )
    record_event(made.token.event(EventKind.TOKEN_ISSUED))
    return one_time_secret_response(
        _seen(scope.namespace, made.token.id).as_json(), made.clear, 201
    )


@resource_tokens.get(_ONE)
@with_bearer(*_READING)
def show(bearer: Bearer, kind: str, reference: str, token_id: int) -> Response:
    """Show a token."""
    return json_response(_seen(_managed(kind, reference, bearer).namespace, token_id).as_json())


@resource_tokens.post(f"{_ALL}/self/rotate")
@rotating_bearer
def rotate_self(bearer: Bearer, kind: str, reference: str) -> Response:
    """Rotate the token of the request."""
    if bearer.personal_token_id is None:
        message = "An OAuth token is refreshed at /oauth/token, not rotated."
        raise NotPersonalError(message)
    scope = _token_scope(kind, reference, bearer, at_least=Role.GUEST)
    return _rotated(scope.namespace, bearer.personal_token_id)


@resource_tokens.post(f"{_ONE}/rotate")
@rotating_bearer
def rotate(bearer: Bearer, kind: str, reference: str, token_id: int) -> Response:
    """Rotate another token whose role is not above that of the caller."""
    if bearer.is_bot and bearer.personal_token_id != token_id:
        message = "A bot rotates no token but its own."
        raise ForbiddenError(message)
    scope = _managed(kind, reference, bearer)
    domain.check_may_end(_seen(scope.namespace, token_id), scope.role)
    check_may_rotate(token_id, bearer, session=db.session())
    return _rotated(scope.namespace, token_id)


@resource_tokens.delete(_ONE)
@with_bearer("api")
def revoke(bearer: Bearer, kind: str, reference: str, token_id: int) -> Response:
    """Revoke a token; its bot ceases to be a member."""
    scope = _managed(kind, reference, bearer)
    domain.check_may_end(_seen(scope.namespace, token_id), scope.role)
    token = domain.revoke_resource_token(scope.namespace, token_id, session=db.session(), now=now())
    record_event(token.event(EventKind.TOKEN_REVOKED))
    return Response(status=204)


def _managed(kind: str, reference: str, bearer: Bearer) -> TokenScope:
    """Return the project or group, if the caller may manage its tokens."""
    return _token_scope(
        kind,
        reference,
        bearer,
        at_least=Role.MAINTAINER if kind == "projects" else Role.OWNER,
    )


def _token_scope(kind: str, reference: str, bearer: Bearer, *, at_least: Role) -> TokenScope:
    viewer, session = Viewer(user_id=bearer.user_id, is_admin=bearer.is_admin), db.session()
    if kind == "projects":
        path = project_path(reference, session=session)
        project = get_project_for(path, viewer, at_least=at_least, session=session)
        return TokenScope(namespace=project.namespace, role=project.role or at_least)
    path = group_path(reference, session=session)
    group = get_group_for(path, viewer, at_least=at_least, session=session)
    return TokenScope(namespace=group.namespace, role=group.role or at_least)


def _role(level: int | None) -> Role:
    """Return the role of a number; without one it is Maintainer, as clients of the API expect."""
    try:
        return Role.MAINTAINER if level is None else Role(level)
    except ValueError as error:
        levels = ", ".join(str(int(role)) for role in Role)
        message = f"access_level must be one of {levels}"
        raise InvalidError(message, field="access_level") from error


def _seen(namespace: Namespace, token_id: int) -> ResourceToken:
    return domain.get_resource_token(namespace, token_id, session=db.session(), now=now())


def _rotated(namespace: Namespace, token_id: int) -> Response:
    made = domain.rotate_resource_token(
        namespace,
        token_id,
        token_expiry(read.all_parameters(), ROTATED_FOR),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    record_event(made.token.event(EventKind.TOKEN_ROTATED))
    return one_time_secret_response(_seen(namespace, made.token.id).as_json(), made.clear, 200)
