"""Where a request may carry a token (RFC 6750 section 2)."""

from enum import Enum

from authlib.oauth2.rfc6749 import InvalidRequestError
from flask import request


class Place(Enum):
    """A place in a request that a token can be in."""

    #: `Authorization: Bearer …`
    HEADER = "header"
    #: `?access_token=…`
    QUERY = "query"
    #: `PRIVATE-TOKEN: …`, which clients of the API use for personal access tokens.
    PRIVATE_HEADER = "private header"


OAUTH_PLACES = (Place.HEADER, Place.QUERY)
API_PLACES = (Place.HEADER, Place.QUERY, Place.PRIVATE_HEADER)


def _tokens_in(place: Place) -> list[str]:
    if place is Place.QUERY:
        return request.args.getlist("access_token")
    if place is Place.PRIVATE_HEADER:
        return [request.headers.get("PRIVATE-TOKEN", "")]
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    return [rest.strip()] if scheme.lower() == "bearer" else []


def presented_token(*places: Place) -> str | None:
    """Return the token of a request; more than one of them is invalid_request (section 2)."""
    given = [token for place in places for token in _tokens_in(place) if token]
    if len(given) > 1:
        raise InvalidRequestError("The token is given in more than one place.")
    return given[0] if given else None
