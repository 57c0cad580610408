"""/api/v4/personal_access_tokens: lists, creates, rotates and revokes personal access tokens."""

from flask import Blueprint

from domain.access.scopes import ADMIN_MODE, FOR_ADMINISTRATORS
from domain.audit.events import EventKind
from domain.errors import ForbiddenError, NotFoundError
from domain.oauth.personal_tokens import lists
from domain.oauth.personal_tokens import tokens as domain
from domain.oauth.personal_tokens.made_by_applications import (
    check_may_rotate,
    find_parent_authorization,
)
from domain.oauth.personal_tokens.tokens import NotPersonalError
from domain.oauth.presented_tokens.bearer import Bearer, InsufficientScopeError
from domain.types.base import Found
from web.api.description.described import refuses_with
from web.api.operations import operation
from web.api.reused_tokens import ends_family_of_reused_token
from web.api.schemas.accounts.access_tokens import (
    AccessToken,
    NewAccessToken,
    RotationBody,
    TokenBody,
    TokenQuery,
)
from web.api.token_expiry import rotated_expiry, token_details
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services

personal_access_tokens = Blueprint("personal_access_tokens", __name__)


@personal_access_tokens.get("/personal_access_tokens")
@operation("personal_access_tokens.index", query=TokenQuery, returns=AccessToken)
def index(bearer: Bearer, query: TokenQuery) -> Found[AccessToken]:
    """List the tokens of the caller, or of all users for administrators."""
    found = lists.list_tokens(
        query.wanted(owner_id=_owner_id(bearer)),
        session=db.session(),
        now=now(),
        sort=query.order,
        offset=query.offset,
        limit=query.size,
    )
    return Found(items=[AccessToken.of(each) for each in found.items], total=found.total)


@personal_access_tokens.get("/personal_access_tokens/self")
@refuses_with(404)
@operation("personal_access_tokens.show_self", returns=AccessToken)
def show_self(bearer: Bearer) -> AccessToken:
    """Show the token that the request is made with."""
    return _shown(_own_id(bearer), bearer)


@personal_access_tokens.get("/personal_access_tokens/<int:token_id>")
@operation("personal_access_tokens.show", returns=AccessToken)
def show(bearer: Bearer, token_id: int) -> AccessToken:
    """Show a token."""
    return _shown(token_id, bearer)


@personal_access_tokens.post("/personal_access_tokens/self/rotate")
@refuses_with(404, 405)
@ends_family_of_reused_token
@operation("personal_access_tokens.rotate_self", body=RotationBody, returns=NewAccessToken)
def rotate_self(bearer: Bearer, body: RotationBody) -> NewAccessToken:
    """Rotate the token of the request."""
    if bearer.personal_token_id is None:
        message = "An OAuth token is refreshed at /oauth/token, not rotated."
        raise NotPersonalError(message)
    return _rotated(bearer.personal_token_id, bearer, body)


@personal_access_tokens.post("/personal_access_tokens/<int:token_id>/rotate")
@ends_family_of_reused_token
@operation("personal_access_tokens.rotate", body=RotationBody, returns=NewAccessToken)
def rotate(bearer: Bearer, token_id: int, body: RotationBody) -> NewAccessToken:
    """Rotate another token; only with a personal access token."""
    if bearer.personal_token_id is None:
        message = "Only a personal access token, or its page, can rotate a personal access token."
        raise ForbiddenError(message)
    check_may_rotate(token_id, bearer, session=db.session())
    _check_no_wider(token_id, bearer)
    return _rotated(token_id, bearer, body)


@personal_access_tokens.delete("/personal_access_tokens/self")
@refuses_with(404)
@operation("personal_access_tokens.revoke_self")
def revoke_self(bearer: Bearer) -> None:
    """Revoke the token that the request is made with."""
    _revoke(_own_id(bearer), bearer)


@personal_access_tokens.delete("/personal_access_tokens/<int:token_id>")
@operation("personal_access_tokens.revoke")
def revoke(bearer: Bearer, token_id: int) -> None:
    """Revoke a token."""
    _revoke(token_id, bearer)


@personal_access_tokens.post("/users/<int:user_id>/personal_access_tokens")
@operation("personal_access_tokens.create", body=TokenBody, returns=NewAccessToken, status=201)
def create(bearer: Bearer, user_id: int, body: TokenBody) -> NewAccessToken:
    """Create a token for a user."""
    keyring, session = services().keyring, db.session()
    details = token_details(body, parent=find_parent_authorization(bearer, session=session))
    made = domain.create_token(user_id, details, session=session, keyring=keyring, now=now())
    record_event(made.token.event(EventKind.TOKEN_ISSUED))
    return NewAccessToken.with_value(made)


def _check_no_wider(token_id: int, bearer: Bearer) -> None:
    """Refuse to hand out the scopes of administrators to a token that lacks them."""
    token = lists.get_token(token_id, owner_id=_owner_id(bearer), session=db.session(), now=now())
    given = {*token.scopes, *((ADMIN_MODE,) if token.keeps_admin_mode else ())}
    own = {*bearer.scopes, *((ADMIN_MODE,) if bearer.keeps_admin_mode else ())}
    for scope in sorted(FOR_ADMINISTRATORS & given - own):
        raise InsufficientScopeError((scope,))


def _owner_id(bearer: Bearer) -> int | None:
    """Return the owner that the caller's view is limited to; None for all owners."""
    return None if bearer.is_admin else bearer.user_id


def _own_id(bearer: Bearer) -> int:
    if bearer.personal_token_id is None:
        message = "This is an OAuth token: use /oauth/token/info instead."
        raise NotFoundError(message)
    return bearer.personal_token_id


def _shown(token_id: int, bearer: Bearer) -> AccessToken:
    owner_id = _owner_id(bearer)
    return AccessToken.of(
        lists.get_token(token_id, owner_id=owner_id, session=db.session(), now=now())
    )


def _rotated(token_id: int, bearer: Bearer, body: RotationBody) -> NewAccessToken:
    made = domain.rotate_token(
        token_id,
        rotated_expiry(body.expires_at),
        owner_id=_owner_id(bearer),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    record_event(made.token.event(EventKind.TOKEN_ROTATED))
    return NewAccessToken.with_value(made)


def _revoke(token_id: int, bearer: Bearer) -> None:
    owner_id = _owner_id(bearer)
    token = domain.revoke_token(token_id, owner_id=owner_id, session=db.session(), now=now())
    record_event(token.event(EventKind.TOKEN_REVOKED))
