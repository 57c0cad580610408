"""Parses OAuth parameters in a JSON object, which GitLab's clients send instead of a form.

RFC 6749 knows forms alone; what holds for them holds here: every value is a text, and none is
given twice.
"""

import json
from typing import NoReturn

from authlib.oauth2.rfc6749 import InvalidRequestError

from domain.oauth.protocol import in_description

#: The longest excerpt in an error, in characters.
_LONGEST = 60


def parameters_in(body: bytes) -> dict[str, list[str]]:
    """Return the parameters of a JSON object of strings, or raise invalid_request.

    null is the same as absent.
    """
    try:
        members = json.loads(body.decode(), object_pairs_hook=list, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidRequestError("The body is not JSON in UTF-8.") from None
    is_object = body.lstrip(b" \t\r\n").startswith(b"{")  # its pairs are a list by now
    if not is_object or not isinstance(members, list):
        raise InvalidRequestError("The body must be a JSON object whose values are strings.")
    found: dict[str, list[str]] = {}
    for name, value in members:
        if name in found:
            raise InvalidRequestError(f"The parameter {_shown(name)} is given more than once.")
        found[name] = [] if value is None else [_text(name, value)]
    return found


def _text(name: str, value: object) -> str:
    if isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value):
        return value
    raise InvalidRequestError(f"The parameter {_shown(name)} must be a string.")


def _shown(name: str) -> str:
    return in_description([name], longest=_LONGEST)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
