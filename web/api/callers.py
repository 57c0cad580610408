"""Callers of API operations: the bearer of a token, or the user that an administrator acts as."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flask import g, request
from werkzeug.datastructures import MultiDict

from domain.access.permissions import Permission
from domain.accounts.users import get_sudo_profile
from domain.core.errors import ForbiddenError, InvalidError
from domain.oauth.token_authentication.bearer import Bearer, InvalidTokenError, TokenRejectionReason
from web.access.bearer_token import TOKEN_QUERY_PARAMETERS
from web.access.decorators import authenticate_bearer, find_bearer_or_count_anonymous
from web.api.parameters import is_json_request, parse_json_object
from web.services import get_services

SUDO_HEADER = "Sudo"
#: Name of the query or body parameter with the ID or name of the user to act as.
_SUDO_PARAMETER = "sudo"
#: Query parameters that identify the caller and are not parameters of the operation.
CALLER_PARAMETERS = frozenset({*TOKEN_QUERY_PARAMETERS, _SUDO_PARAMETER, f"{_SUDO_PARAMETER}[]"})
_READ_METHODS = frozenset({"GET", "HEAD"})


def find_acting_bearer(bearer: Bearer | None, named: Sequence[Any]) -> Bearer | None:
    """Return the bearer as `get_acting_bearer` does, or None for an anonymous request.

    Raise InvalidTokenError if a request without a token names a user.
    """
    if bearer is not None:
        return get_acting_bearer(bearer, named)
    if named:
        raise InvalidTokenError(TokenRejectionReason.MISSING)
    return None


def get_acting_bearer(bearer: Bearer, named: Sequence[Any]) -> Bearer:
    """Return the bearer that the request acts as.

    `named` contains the user IDs or names in all parts of the request. If it is empty, the request
    acts as the bearer of the token. Otherwise the request either acts as the named user or fails.

    Raise InsufficientScopeError or ForbiddenError if the token does not permit this. Raise
    InvalidError or NotFoundError if the values do not identify exactly one user.
    """
    if not named:
        return bearer
    bearer.require_sudo()
    profile = get_sudo_profile(_get_single_user(named), connection=get_services().connections)
    g.bearer = replace(bearer, profile=profile, sudo_by=bearer.profile)
    found: Bearer = g.bearer
    return found


def _get_single_user(named: Sequence[Any]) -> str:
    """Return the only user that the request names, even if the user is named repeatedly.

    Raise InvalidError if several users are named.
    """
    words = {str(each).strip() if type(each) in {str, int} else "" for each in named}
    if len(words) > 1 or "" in words:
        raise InvalidError(
            "`sudo` must be the ID or the name of a single user.", field=_SUDO_PARAMETER
        )
    return words.pop()


def list_users_in_header_and_query() -> list[Any]:
    """Return the users named by the header and the query."""
    return [*request.headers.getlist(SUDO_HEADER), *_list_sudo_values(request.args)]


def list_users_to_act_as() -> list[Any]:
    """Return the users named by the header, the query and the body."""
    return [*list_users_in_header_and_query(), *_list_users_in_body()]


def _list_sudo_values(pairs: MultiDict[str, str]) -> list[str]:
    return [*pairs.getlist(_SUDO_PARAMETER), *pairs.getlist(f"{_SUDO_PARAMETER}[]")]


def _list_users_in_body() -> list[Any]:
    if request.method in _READ_METHODS:
        return []
    if not is_json_request():
        return [*_list_sudo_values(request.form)]
    # The operation reports errors in the body when it reads the body itself.
    with suppress(InvalidError):
        given = parse_json_object(request.get_data())
        return [given[_SUDO_PARAMETER]] if _SUDO_PARAMETER in given else []
    return []


def get_fast_operation_caller(permission: Permission) -> Bearer:
    """Return the bearer of an operation that has no parameters and only requires scopes."""
    return get_acting_bearer(
        authenticate_bearer(permission.scopes), list_users_in_header_and_query()
    )


def get_caller(permission: Permission, named: Sequence[Any]) -> Bearer | None:
    """Return the bearer of a request, or None if the operation permits requests without a token.

    `named` contains the users to act as. Raise InvalidTokenError, InsufficientScopeError or
    ForbiddenError if the token does not permit the operation.
    """
    scopes = permission.scopes
    if permission.is_open:
        bearer = find_acting_bearer(find_bearer_or_count_anonymous(scopes), named)
    else:
        bearer = get_acting_bearer(authenticate_bearer(scopes), named)
    if bearer is not None:
        _check_caller_kind(bearer, permission)
    return bearer


def _check_caller_kind(bearer: Bearer, permission: Permission) -> None:
    if permission.is_for_administrators:
        bearer.require_administrator()
    if permission.is_for_people and bearer.belongs_to_application:
        message = "Applications cannot do this. Use a personal access token, or the web interface."
        raise ForbiddenError(message)
