"""Reads API request parameters, which are then validated by schemas."""

from typing import Any

import orjson
from flask import request
from werkzeug.datastructures import MultiDict

from domain.core.errors import InvalidError

_READ_METHODS = frozenset({"GET", "HEAD"})


def read_all_parameters() -> dict[str, Any]:
    """Return the parameters of the query and the body.

    The body is a JSON object or a form, and takes precedence.
    """
    body = (
        parse_json_object(request.get_data())
        if is_json_request()
        else collect_parameter_pairs(request.form)
    )
    return {**collect_parameter_pairs(request.args), **body}


def is_json_request() -> bool:
    """Return whether the request declares a JSON body."""
    media_type = request.mimetype
    return media_type == "application/json" or media_type.endswith("+json")


def read_request_parameters() -> dict[str, Any]:
    """Return the parameters of a request. For GET and HEAD, only the query is read."""
    return (
        collect_parameter_pairs(request.args)
        if request.method in _READ_METHODS
        else read_all_parameters()
    )


def collect_parameter_pairs(arguments: MultiDict[str, str]) -> dict[str, Any]:
    """Return query or form parameters as a mapping.

    The value of a name with brackets, such as `scopes[]`, is a list. The brackets are removed.
    """
    return {
        name.removesuffix("[]"): values if name.endswith("[]") else values[-1]
        for name, values in arguments.lists()
    }


def parse_json_object(content: bytes) -> dict[str, Any]:
    """Parse a JSON object, and return an empty object for an empty body.

    Raise InvalidError if the content is not a JSON object.
    """
    if not content.strip():
        return {}
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidError("The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise InvalidError("The body must be a JSON object.")
    return value
