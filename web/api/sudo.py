"""Sudo: the personal token of an administrator acts as another user, as in GitLab's API."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flask import g, request
from werkzeug.datastructures import MultiDict

from domain.accounts.acting import get_profile_to_act_as
from domain.errors import InvalidError
from domain.oauth.presented_tokens.bearer import Bearer, BearerRefusedError, Refusal
from web.access.bearer_token import QUERY_TOKENS
from web.api.parameters import is_json_request, json_object
from web.services import services

HEADER = "Sudo"
#: Of the query or the body: the id or the name of the user.
PARAMETER = "sudo"
#: What a query says of who asks, and not of what is asked for.
NO_PARAMETERS = frozenset({*QUERY_TOKENS, PARAMETER, f"{PARAMETER}[]"})
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
        message = "sudo must be the id or the name of one user."
        raise InvalidError(message, field=PARAMETER)
    return words.pop()


def named_beside_the_body() -> list[Any]:
    """Return what the header and the query say."""
    return [*request.headers.getlist(HEADER), *_given_in(request.args)]


def named_anywhere() -> list[Any]:
    """Return what the header, the query and the body say."""
    return [*named_beside_the_body(), *_in_body()]


def _given_in(pairs: MultiDict[str, str]) -> list[str]:
    return [*pairs.getlist(PARAMETER), *pairs.getlist(f"{PARAMETER}[]")]


def _in_body() -> list[Any]:
    if request.method in _READING:
        return []
    if not is_json_request():
        return [*_given_in(request.form)]
    # What is wrong with a body is said where it is read for the operation.
    with suppress(InvalidError):
        given = json_object(request.get_data())
        return [given[PARAMETER]] if PARAMETER in given else []
    return []
