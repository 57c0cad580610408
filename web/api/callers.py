"""Callers of API operations: the bearer of a token, or the user that an administrator acts as."""

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
#: Name of the query or body parameter that holds the id or name of the user to act as.
_PARAMETER = "sudo"
#: Query parameters that identify the caller and are not parameters of the operation.
NO_PARAMETERS = frozenset({*QUERY_TOKENS, _PARAMETER, f"{_PARAMETER}[]"})
_READING = frozenset({"GET", "HEAD"})


def acting_or_anonymous(bearer: Bearer | None, named: Sequence[Any]) -> Bearer | None:
    """Return the bearer as `acting` does, or None for an anonymous request.

    Raise BearerRefusedError for a request that names a user without a token.
    """
    if bearer is not None:
        return acting(bearer, named)
    if named:
        raise BearerRefusedError(Refusal.MISSING)
    return None


def acting(bearer: Bearer, named: Sequence[Any]) -> Bearer:
    """Return the bearer that the request acts as, which is another user if the request names one.

    `named` holds the values from all places of the request. The request is carried out as the named
    user or not at all.

    Raise InsufficientScopeError or ForbiddenError if the token does not permit this. Raise
    InvalidError or NotFoundError if the values do not identify one user.
    """
    if not named:
        return bearer
    bearer.require_sudo()
    profile = get_profile_to_act_as(_one_of(named), connection=services().connections)
    g.bearer = replace(bearer, profile=profile, sudo_by=bearer.profile)
    found: Bearer = g.bearer
    return found


def _one_of(named: Sequence[Any]) -> str:
    """Return the single user that the request names, possibly more than once.

    Raise InvalidError if several users are named.
    """
    words = {str(each).strip() if type(each) in {str, int} else "" for each in named}
    if len(words) > 1 or "" in words:
        raise InvalidError("`sudo` must be the id or the name of a single user.", field=_PARAMETER)
    return words.pop()


def named_beside_the_body() -> list[Any]:
    """Return the users named by the header and the query."""
    return [*request.headers.getlist(SUDO), *_given_in(request.args)]


def named_anywhere() -> list[Any]:
    """Return the users named by the header, the query and the body."""
    return [*named_beside_the_body(), *_in_body()]


def _given_in(pairs: MultiDict[str, str]) -> list[str]:
    return [*pairs.getlist(_PARAMETER), *pairs.getlist(f"{_PARAMETER}[]")]


def _in_body() -> list[Any]:
    if request.method in _READING:
        return []
    if not is_json_request():
        return [*_given_in(request.form)]
    # The operation reports errors in the body when it reads the body itself.
    with suppress(InvalidError):
        given = json_object(request.get_data())
        return [given[_PARAMETER]] if _PARAMETER in given else []
    return []


def get_ready_caller(permission: Permission) -> Bearer:
    """Return the bearer of an operation that has no parameters and only requires scopes."""
    return acting(admit(permission.scopes), named_beside_the_body())


def get_caller(permission: Permission, named: Sequence[Any]) -> Bearer | None:
    """Return the bearer of a request, or None if the operation permits requests without a token.

    `named` holds the users to act as. Raise the matching error if the token is not sufficient.
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
        message = "Applications cannot do this. Use a personal access token, or the web interface."
        raise ForbiddenError(message)
