"""/api/v4/personal_access_tokens: tokens listed, shown, made, rotated and revoked by scripts."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from flask import Blueprint, Response, request

from domain.errors import ForbiddenError, NotFoundError
from domain.oauth import personal_token_lists as lists
from domain.oauth import personal_tokens as domain
from domain.oauth.bearer import Bearer
from domain.oauth.personal_token_lists import TIMES, TokenFilter
from domain.oauth.personal_tokens import NewToken, NotPersonalError, TokenDetails
from domain.oauth.scopes import BY_NAME
from web import api_parameters as read
from web.access import bearer as with_bearer
from web.api_pages import portion_response, requested_portion
from web.extensions import db
from web.fast_json import json_response
from web.services import now, services, settings

personal_access_tokens = Blueprint("personal_access_tokens", __name__)
_READING = ("api", "read_api", "read")
#: Whatever a token is good for, its bearer may look at it and, having lost it, revoke it.
_ANY = tuple(BY_NAME)
#: How long a rotated token lives when no expiry is asked for; clients of the API count on it.
_ROTATED_FOR = timedelta(days=7)


@personal_access_tokens.get("/personal_access_tokens")
@with_bearer(*_READING)
def index(bearer: Bearer) -> Response:
    """List the user's tokens; to administrators everybody's."""
    portion = requested_portion()
    found = lists.list_tokens(
        _filter(request.args, bearer),
        session=db.session(),
        now=now(),
        sort=read.one_of(request.args, "sort", lists.SORTS),
        offset=portion.offset,
        limit=portion.size,
    )
    return portion_response([each.as_json() for each in found.items], portion, total=found.total)


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
@with_bearer("api")
def rotate_self(bearer: Bearer) -> Response:
    """Put a new token in the place of the one that the request is made with."""
    if bearer.personal_token_id is None:
        message = "An OAuth token is refreshed at /oauth/token, not rotated."
        raise NotPersonalError(message)
    return _rotated(bearer.personal_token_id, bearer)


@personal_access_tokens.post("/personal_access_tokens/<int:token_id>/rotate")
@with_bearer("api")
def rotate(bearer: Bearer, token_id: int) -> Response:
    """Put a new token in the place of another one."""
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
    given = read.all_parameters()
    details = TokenDetails(
        name=read.text(given, "name"),
        scopes=" ".join(read.words(given, "scopes")),
        expires_at=_expiry(given),
    )
    keyring, session = services().keyring, db.session()
    made = domain.create_token(user_id, details, session=session, keyring=keyring, now=now())
    return _shown_once(made, 201)


def _owner_id(bearer: Bearer) -> int | None:
    """Return whose tokens the caller may know of: None means everybody's."""
    return None if bearer.is_admin else bearer.user_id


def _own_id(bearer: Bearer) -> int:
    if bearer.personal_token_id is None:
        message = "This is an OAuth token; /oauth/token/info tells about it."
        raise NotFoundError(message)
    return bearer.personal_token_id


def _filter(given: Mapping[str, Any], bearer: Bearer) -> TokenFilter:
    state = read.one_of(given, "state", ("active", "inactive"))
    return TokenFilter(
        owner_id=_owner_id(bearer),
        user_id=read.whole_number(given, "user_id"),
        is_active=None if state is None else state == "active",
        is_revoked=read.yes_or_no(given, "revoked"),
        search=read.text(given, "search"),
        at_least=_times(given, "after"),
        at_most=_times(given, "before"),
    )


def _times(given: Mapping[str, Any], side: str) -> dict[str, datetime]:
    found = {name: read.moment(given, f"{name}_{side}") for name in TIMES}
    return {name: moment for name, moment in found.items() if moment is not None}


def _expiry(given: Mapping[str, Any], otherwise: timedelta | None = None) -> datetime:
    longest = timedelta(days=settings().personal_access_token_lifetime_days)
    day = read.day(given, "expires_at")
    if day is None and otherwise is not None:
        day = now().date() + min(otherwise, longest)
    return domain.expiry_on(day, longest=longest, now=now())


def _shown(token_id: int, bearer: Bearer) -> Response:
    owner_id = _owner_id(bearer)
    token = lists.get_token(token_id, owner_id=owner_id, session=db.session(), now=now())
    return json_response(token.as_json())


def _rotated(token_id: int, bearer: Bearer) -> Response:
    made = domain.rotate_token(
        token_id,
        _expiry(read.all_parameters(), _ROTATED_FOR),
        owner_id=_owner_id(bearer),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    return _shown_once(made, 200)


def _revoked(token_id: int, bearer: Bearer) -> Response:
    domain.revoke_token(token_id, owner_id=_owner_id(bearer), session=db.session(), now=now())
    return Response(status=204)


def _shown_once(made: NewToken, status: int) -> Response:
    response = json_response({**made.token.as_json(), "token": made.clear}, status)
    response.headers["Cache-Control"] = "no-store"
    return response
