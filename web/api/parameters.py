"""Reads API request parameters, which schemas validate."""

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


def read_given_parameters() -> dict[str, Any]:
    """Return the parameters of a request. For GET and HEAD, only the query is read."""
    return (
        collect_parameter_pairs(request.args)
        if request.method in _READ_METHODS
        else read_all_parameters()
    )


def collect_parameter_pairs(arguments: MultiDict[str, str]) -> dict[str, Any]:
    """Return pairs as a mapping. Names with brackets, such as `scopes[]`, have lists as values."""
    return {
        name.removesuffix("[]"): values if name.endswith("[]") else values[-1]
        for name, values in arguments.lists()
    }


def parse_json_object(content: bytes) -> dict[str, Any]:
    """Return the object in a JSON text, or an empty object for an empty text.

    Raise InvalidError if the text is not a JSON object.
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
