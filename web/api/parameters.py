"""Reads the parameters of an API request, for schemas to check."""

from typing import Any

import orjson
from flask import request
from werkzeug.datastructures import MultiDict

from domain.core.errors import InvalidError

_READING = frozenset({"GET", "HEAD"})


def all_parameters() -> dict[str, Any]:
    """Return the parameters of the query and the body (JSON object or form); the body wins."""
    body = json_object(request.get_data()) if is_json_request() else pairs_of(request.form)
    return {**pairs_of(request.args), **body}


def is_json_request() -> bool:
    """Return whether a request says that its body is JSON."""
    media_type = request.mimetype
    return media_type == "application/json" or media_type.endswith("+json")


def given_parameters() -> dict[str, Any]:
    """Return the parameters that a request of any method has: of reading ones, the query's."""
    return pairs_of(request.args) if request.method in _READING else all_parameters()


def pairs_of(given: MultiDict[str, str]) -> dict[str, Any]:
    """Return pairs as a mapping; a name such as `scopes[]` makes a list."""
    return {
        name.removesuffix("[]"): values if name.endswith("[]") else values[-1]
        for name, values in given.lists()
    }


def json_object(content: bytes) -> dict[str, Any]:
    """Return the object of a JSON text, an empty one for none; raise InvalidError."""
    if not content.strip():
        return {}
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidError("The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise InvalidError("The body must be a JSON object.")
    return value
