"""/api/v4/personal_access_tokens: lists, creates, rotates and revokes personal access tokens."""

from dataclasses import replace

from flask import Blueprint, Response

from domain.audit.events import EventKind
from domain.errors import ForbiddenError, NotFoundError
from domain.oauth.personal_tokens import lists
from domain.oauth.personal_tokens import tokens as domain
from domain.oauth.personal_tokens.made_by_applications import (
    check_may_rotate,
    find_parent_authorization,
)
from domain.oauth.personal_tokens.tokens import NotPersonalError
from domain.oauth.presented_tokens.bearer import Bearer
from domain.oauth.scopes import BY_NAME
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

personal_access_tokens = Blueprint("personal_access_tokens", __name__)
_READING = ("api", "read_api", "read")
#: A token of any scope may be used to read or revoke that token itself.
_ANY = tuple(BY_NAME)


@personal_access_tokens.get("/personal_access_tokens")
@with_bearer(*_READING)
def index(bearer: Bearer) -> Response:
    """List the tokens of the caller, or of all users for administrators."""
    given, wanted_page = token_query(), requested_page()
    found = lists.list_tokens(
        token_filter(given, owner_id=_owner_id(bearer)),
        session=db.session(),
        now=now(),
        sort=token_order(given),
        offset=wanted_page.offset,
        limit=wanted_page.size,
    )
    return offset_response([each.as_json() for each in found.items], wanted_page, total=found.total)


@personal_access_tokens.get("/personal_access_tokens/self")
@with_bearer(*_ANY)
def show_self(bearer: Bearer) -> Response:
    """Show the token that the request is made with."""
    return _shown(_own_id(bearer), bearer)


@personal_access_tokens.get("/personal_access_tokens/<int:token_id>")
@with_bearer(*_READING)
def show(bearer: Bearer, token_id: int) -> Response:
    """Show a token."""
    return _shown(token_id, bearer)


@personal_access_tokens.post("/personal_access_tokens/self/rotate")
@rotating_bearer
def rotate_self(bearer: Bearer) -> Response:
    """Rotate the token of the request."""
    if bearer.personal_token_id is None:
        message = "An OAuth token is refreshed at /oauth/token, not rotated."
        raise NotPersonalError(message)
    return _rotated(bearer.personal_token_id, bearer)


@personal_access_tokens.post("/personal_access_tokens/<int:token_id>/rotate")
@rotating_bearer
def rotate(bearer: Bearer, token_id: int) -> Response:
    """Rotate another token; only with a personal access token."""
    if bearer.personal_token_id is None:
        message = "Rotating a personal access token needs a personal access token, or its page."
        raise ForbiddenError(message)
    check_may_rotate(token_id, bearer, session=db.session())
    return _rotated(token_id, bearer)


@personal_access_tokens.delete("/personal_access_tokens/self")
@with_bearer(*_ANY)
def revoke_self(bearer: Bearer) -> Response:
    """Revoke the token that the request is made with."""
    return _revoked(_own_id(bearer), bearer)


@personal_access_tokens.delete("/personal_access_tokens/<int:token_id>")
@with_bearer("api")
def revoke(bearer: Bearer, token_id: int) -> Response:
    """Revoke a token."""
    return _revoked(token_id, bearer)


@personal_access_tokens.post("/users/<int:user_id>/personal_access_tokens")
@with_bearer("api")
def create(bearer: Bearer, user_id: int) -> Response:
    """Create a token for a user; administrators only."""
    if not bearer.is_admin:
        message = "Only administrators create tokens for others."
        raise ForbiddenError(message)
    keyring, session = services().keyring, db.session()
    parent = find_parent_authorization(bearer, session=session)
    details = replace(token_details(read.all_parameters()), parent=parent)
    made = domain.create_token(user_id, details, session=session, keyring=keyring, now=now())
    record_event(made.token.event(EventKind.TOKEN_ISSUED))
    return one_time_secret_response(made.token.as_json(), made.clear, 201)


def _owner_id(bearer: Bearer) -> int | None:
    """Return the owner that the caller's view is limited to; None for all owners."""
    return None if bearer.is_admin else bearer.user_id


def _own_id(bearer: Bearer) -> int:
    if bearer.personal_token_id is None:
        message = "This is an OAuth token; /oauth/token/info tells about it."
        raise NotFoundError(message)
    return bearer.personal_token_id


def _shown(token_id: int, bearer: Bearer) -> Response:
    owner_id = _owner_id(bearer)
    token = lists.get_token(token_id, owner_id=owner_id, session=db.session(), now=now())
    return json_response(token.as_json())


def _rotated(token_id: int, bearer: Bearer) -> Response:
    made = domain.rotate_token(
        token_id,
        token_expiry(read.all_parameters(), ROTATED_FOR),
        owner_id=_owner_id(bearer),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    record_event(made.token.event(EventKind.TOKEN_ROTATED))
    return one_time_secret_response(made.token.as_json(), made.clear, 200)


def _revoked(token_id: int, bearer: Bearer) -> Response:
    owner_id = _owner_id(bearer)
    token = domain.revoke_token(token_id, owner_id=owner_id, session=db.session(), now=now())
    record_event(token.event(EventKind.TOKEN_REVOKED))
    return Response(status=204)
