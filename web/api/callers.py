"""Who calls an operation of the API: the bearer, or whom an administrator acts as (`sudo`)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flask import g, request
from werkzeug.datastructures import MultiDict

from domain.access.permissions import Permission
from domain.accounts.users import get_profile_to_act_as
from domain.core.errors import ForbiddenError, InvalidError
from domain.oauth.presented_tokens.bearer import Bearer, BearerRefusedError, Refusal
from web.access.bearer_token import QUERY_TOKENS
from web.access.decorators import admit, admit_or_anonymous
from web.api.parameters import is_json_request, json_object
from web.services import services

SUDO = "Sudo"
#: Of the query or the body: the id or the name of the user.
_PARAMETER = "sudo"
#: What a query says of who asks, and not of what is asked for.
NO_PARAMETERS = frozenset({*QUERY_TOKENS, _PARAMETER, f"{_PARAMETER}[]"})
_READING = frozenset({"GET", "HEAD"})


def acting_or_anonymous(bearer: Bearer | None, named: Sequence[Any]) -> Bearer | None:
    """As `acting`; raise BearerRefusedError for a request without a token that names a user."""
    if bearer is not None:
        return acting(bearer, named)
    if named:
        raise BearerRefusedError(Refusal.MISSING)
    return None


def acting(bearer: Bearer, named: Sequence[Any]) -> Bearer:
    """Return the bearer that the request acts with: another user's, if it names one.

    `named` is what the request says, in all places.

    No request is carried out as another user than the one that it names: raises
    InsufficientScopeError or ForbiddenError for a token that may not do this, and InvalidError or
    NotFoundError for a user who is no one person.
    """
    if not named:
        return bearer
    bearer.require_sudo()
    profile = get_profile_to_act_as(_one_of(named), connection=services().connections)
    g.bearer = replace(bearer, profile=profile, sudo_by=bearer.profile)
    found: Bearer = g.bearer
    return found


def _one_of(named: Sequence[Any]) -> str:
    """Return the one user that is named, however often."""
    words = {str(each).strip() if type(each) in {str, int} else "" for each in named}
    if len(words) > 1 or "" in words:
        raise InvalidError("sudo must be the id or the name of one user.", field=_PARAMETER)
    return words.pop()


def named_beside_the_body() -> list[Any]:
    """Return what the header and the query say."""
    return [*request.headers.getlist(SUDO), *_given_in(request.args)]


def named_anywhere() -> list[Any]:
    """Return what the header, the query and the body say."""
    return [*named_beside_the_body(), *_in_body()]


def _given_in(pairs: MultiDict[str, str]) -> list[str]:
    return [*pairs.getlist(_PARAMETER), *pairs.getlist(f"{_PARAMETER}[]")]


def _in_body() -> list[Any]:
    if request.method in _READING:
        return []
    if not is_json_request():
        return [*_given_in(request.form)]
    # What is wrong with a body is said where it is read for the operation.
    with suppress(InvalidError):
        given = json_object(request.get_data())
        return [given[_PARAMETER]] if _PARAMETER in given else []
    return []


def get_ready_caller(permission: Permission) -> Bearer:
    """Return the bearer of an operation that takes no parameters and asks for scopes alone."""
    return acting(admit(permission.scopes), named_beside_the_body())


def get_caller(permission: Permission, named: Sequence[Any]) -> Bearer | None:
    """Return the bearer of a request, None for one without a token if that is allowed.

    `named` is whom the request wants to act as. Raises the error of a token that is not enough.
    """
    scopes = permission.scopes
    if permission.is_open:
        bearer = acting_or_anonymous(admit_or_anonymous(scopes), named)
    else:
        bearer = acting(admit(scopes), named)
    if bearer is not None:
        _check(bearer, permission)
    return bearer


def _check(bearer: Bearer, permission: Permission) -> None:
    if permission.is_for_administrators:
        bearer.require_administrator()
    if permission.is_for_people and bearer.is_of_application:
        message = "An application cannot do this: use a personal access token, or the page."
        raise ForbiddenError(message)
