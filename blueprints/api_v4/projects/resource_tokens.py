"""/api/v4/{projects,groups}/:id/access_tokens: access tokens of one project or group."""

from flask import Blueprint

from domain.audit.events import EventKind
from domain.errors import ForbiddenError
from domain.oauth.personal_tokens import resource_tokens as domain
from domain.oauth.personal_tokens.made_by_applications import (
    check_may_rotate,
    find_parent_authorization,
)
from domain.oauth.personal_tokens.resource_tokens import ResourceToken, TokenRequest
from domain.oauth.personal_tokens.tokens import NotPersonalError
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.views import Namespace, Viewer
from domain.types.base import Found
from web.api.description.described import refuses_with
from web.api.operations import operation
from web.api.reused_tokens import ends_family_of_reused_token
from web.api.schemas.accounts.access_tokens import (
    NewResourceAccessToken,
    ResourceAccessToken,
    ResourceTokenBody,
    RotationBody,
    TokenQuery,
)
from web.api.token_expiry import rotated_expiry, token_details
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services

resource_tokens = Blueprint(
    "resource_tokens",
    __name__,
    url_prefix="/<any(projects, groups):kind>/<path:reference>/access_tokens",
)


@resource_tokens.get("")
@operation("resource_tokens.index", query=TokenQuery, returns=ResourceAccessToken)
def index(namespace: Namespace, query: TokenQuery) -> Found[ResourceAccessToken]:
    """List the tokens of a project or a group."""
    found = domain.list_resource_tokens(
        query.wanted(namespace=namespace),
        namespace,
        session=db.session(),
        now=now(),
        sort=query.order,
        offset=query.offset,
        limit=query.size,
    )
    items = [ResourceAccessToken.of_resource(each) for each in found.items]
    return Found(items=items, total=found.total)


@resource_tokens.post("")
@operation(
    "resource_tokens.create", body=ResourceTokenBody, returns=NewResourceAccessToken, status=201
)
def create(
    bearer: Bearer, viewer: Viewer, namespace: Namespace, body: ResourceTokenBody
) -> NewResourceAccessToken:
    """Create a token, and the bot that it acts as."""
    if bearer.is_bot:
        message = "A bot cannot create access tokens."
        raise ForbiddenError(message)
    session = db.session()
    details = token_details(body, parent=find_parent_authorization(bearer, session=session))
    wanted = TokenRequest(details=details, role=body.access_level)
    made = domain.create_resource_token(
        namespace, wanted, by=viewer, session=session, keyring=services().keyring, now=now()
    )
    record_event(made.token.event(EventKind.TOKEN_ISSUED))
    return NewResourceAccessToken.with_value(_seen(namespace, made.token.id), made.clear)


@resource_tokens.get("/<int:token_id>")
@operation("resource_tokens.show", returns=ResourceAccessToken)
def show(namespace: Namespace, token_id: int) -> ResourceAccessToken:
    """Show a token."""
    return ResourceAccessToken.of_resource(_seen(namespace, token_id))


@resource_tokens.post("/self/rotate")
@refuses_with(405)
@ends_family_of_reused_token
@operation("resource_tokens.rotate_self", body=RotationBody, returns=NewResourceAccessToken)
def rotate_self(bearer: Bearer, namespace: Namespace, body: RotationBody) -> NewResourceAccessToken:
    """Rotate the token of the request."""
    if bearer.personal_token_id is None:
        message = "An OAuth token is refreshed at /oauth/token, not rotated."
        raise NotPersonalError(message)
    return _rotated(namespace, bearer.personal_token_id, body)


@resource_tokens.post("/<int:token_id>/rotate")
@ends_family_of_reused_token
@operation("resource_tokens.rotate", body=RotationBody, returns=NewResourceAccessToken)
def rotate(
    bearer: Bearer, viewer: Viewer, namespace: Namespace, token_id: int, body: RotationBody
) -> NewResourceAccessToken:
    """Rotate another token whose role is not above that of the caller."""
    if bearer.is_bot and bearer.personal_token_id != token_id:
        message = "A bot can only rotate its own token."
        raise ForbiddenError(message)
    _get_to_end(namespace, token_id, viewer)
    check_may_rotate(token_id, bearer, session=db.session())
    return _rotated(namespace, token_id, body)


@resource_tokens.delete("/<int:token_id>")
@operation("resource_tokens.revoke")
def revoke(namespace: Namespace, viewer: Viewer, token_id: int) -> None:
    """Revoke a token; its bot is no longer a member."""
    _get_to_end(namespace, token_id, viewer)
    token = domain.revoke_resource_token(namespace, token_id, session=db.session(), now=now())
    record_event(token.event(EventKind.TOKEN_REVOKED))


def _seen(namespace: Namespace, token_id: int) -> ResourceToken:
    return domain.get_resource_token(namespace, token_id, session=db.session(), now=now())


def _get_to_end(namespace: Namespace, token_id: int, viewer: Viewer) -> None:
    domain.get_token_to_end(namespace, token_id, by=viewer, session=db.session(), now=now())


def _rotated(namespace: Namespace, token_id: int, body: RotationBody) -> NewResourceAccessToken:
    made = domain.rotate_resource_token(
        namespace,
        token_id,
        rotated_expiry(body.expires_at),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    record_event(made.token.event(EventKind.TOKEN_ROTATED))
    return NewResourceAccessToken.with_value(_seen(namespace, made.token.id), made.clear)
