"""Parameters of the API's token requests, and the response with a new token."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from flask import Response
from werkzeug.datastructures import MultiDict

from domain.database.list_queries import one_of
from domain.oauth.personal_tokens.lists import SORTS, TIMES, TokenFilter
from domain.oauth.personal_tokens.tokens import TokenDetails, expiry_on
from domain.projects.views import Namespace
from web.api import parameters as read
from web.api.offset_pages import list_query
from web.http.json_responses import json_response
from web.services import now, settings

#: Lifetime of a rotated token without a requested expiry; API clients rely on it.
ROTATED_FOR = timedelta(days=7)


_FILTERS = ("user_id", "state", "revoked", "search")
_PERIODS = tuple(f"{name}_{side}" for name in TIMES for side in ("after", "before"))
#: The name that API clients use for the default order.
_BY_ID = "desc"


def token_query() -> MultiDict[str, str]:
    """Return the query of a token list; raise QueryError for unknown parameters."""
    return list_query(*_FILTERS, *_PERIODS, "sort")


def token_order(given: MultiDict[str, str]) -> str | None:
    """Return the requested order, or None for the newest first."""
    name = one_of(given, "sort", (*SORTS, _BY_ID), _BY_ID)
    return None if name == _BY_ID else name


def token_filter(
    given: Mapping[str, Any], *, owner_id: int | None = None, namespace: Namespace | None = None
) -> TokenFilter:
    """Return the requested filter."""
    state = read.one_of(given, "state", ("active", "inactive"))
    return TokenFilter(
        owner_id=owner_id,
        user_id=read.whole_number(given, "user_id"),
        namespace=namespace,
        is_active=None if state is None else state == "active",
        is_revoked=read.yes_or_no(given, "revoked"),
        search=read.text(given, "search"),
        at_least=_times(given, "after"),
        at_most=_times(given, "before"),
    )


def _times(given: Mapping[str, Any], side: str) -> dict[str, datetime]:
    found = {name: read.moment(given, f"{name}_{side}") for name in TIMES}
    return {name: moment for name, moment in found.items() if moment is not None}


def token_details(given: Mapping[str, Any]) -> TokenDetails:
    """Return the requested fields of a new token."""
    return TokenDetails(
        name=read.text(given, "name"),
        scopes=" ".join(read.words(given, "scopes")),
        expires_at=token_expiry(given),
        description=read.text(given, "description"),
    )


def token_expiry(given: Mapping[str, Any], otherwise: timedelta | None = None) -> datetime:
    """Return the requested expiry, or `otherwise` from now, at most the latest allowed."""
    longest = timedelta(days=settings().personal_access_token_lifetime_days)
    day = read.day(given, "expires_at")
    if day is None and otherwise is not None:
        day = now().date() + min(otherwise, longest)
    return expiry_on(day, longest=longest, now=now())


def one_time_secret_response(token: Mapping[str, Any], clear: str, status: int) -> Response:
    """Return a response with a token and its value, which is not stored."""
    response = json_response({**token, "token": clear}, status)
    response.headers["Cache-Control"] = "no-store"
    return response
