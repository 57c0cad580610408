"""Parses the parameters of API requests; raises InvalidError with the name of the parameter.

An empty parameter counts as missing.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import orjson
from flask import request
from werkzeug.datastructures import MultiDict

from domain.database.paging import LARGEST_ID, parse_id
from domain.errors import InvalidError

_YES_OR_NO = {"true": True, "1": True, "false": False, "0": False}


def all_parameters() -> dict[str, Any]:
    """Return the parameters of the query and the body (JSON object or form); the body wins."""
    media_type = request.mimetype
    is_json = media_type == "application/json" or media_type.endswith("+json")
    return {**_pairs(request.args), **(_json_parameters() if is_json else _pairs(request.form))}


def _pairs(given: MultiDict[str, str]) -> dict[str, Any]:
    """Return pairs as a mapping; a name such as `scopes[]` makes a list."""
    return {
        name.removesuffix("[]"): values if name.endswith("[]") else values[-1]
        for name, values in given.lists()
    }


def _json_parameters() -> dict[str, Any]:
    content = request.get_data()
    if not content.strip():
        return {}
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        message = "The body is not valid JSON."
        raise InvalidError(message) from error
    if not isinstance(value, dict):
        message = "The body must be a JSON object."
        raise InvalidError(message)
    return value


def _refuse(name: str, expected: str) -> InvalidError:
    return InvalidError(f"{name} must be {expected}", field=name)


def text(given: Mapping[str, Any], name: str) -> str:
    """Return a string, which may be empty."""
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _refuse(name, "a text")
    return value


def words(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of words: a JSON array, or a string separated by commas or spaces."""
    value = given.get(name)
    found = value.replace(",", " ").split() if isinstance(value, str) else value or []
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise _refuse(name, "a list of texts")
    return tuple(found)


def whole_number(
    given: Mapping[str, Any], name: str, *, least: int = 0, most: int = LARGEST_ID
) -> int | None:
    """Return an integer within bounds."""
    found = given.get(name)
    value = "" if found is None else str(found)  # 0 is a number like any other
    if not value:
        return None
    number = parse_id(value)
    if number is None or not least <= number <= most:
        raise _refuse(name, f"a whole number, at least {least}")
    return number


def one_of(given: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str | None:
    """Return one of the choices."""
    value = text(given, name)
    if value and value not in choices:
        raise _refuse(name, f"one of {', '.join(choices)}")
    return value or None


def yes_or_no(given: Mapping[str, Any], name: str) -> bool | None:
    """Return a boolean: true or false, 1 or 0."""
    value = given.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return value
    if str(value).lower() not in _YES_OR_NO:
        raise _refuse(name, "true or false")
    return _YES_OR_NO[str(value).lower()]


def day(given: Mapping[str, Any], name: str) -> date | None:
    """Return a date."""
    value = text(given, name)
    try:
        return date.fromisoformat(value) if value else None
    except ValueError as error:
        raise _refuse(name, "a date like 2027-05-31") from error


def moment(given: Mapping[str, Any], name: str) -> datetime | None:
    """Return a date-time; without an offset, or as a date alone, it is in UTC."""
    value = text(given, name)
    if not value:
        return None
    try:
        return in_utc(value)
    except ValueError as error:
        raise InvalidError(f"{name} {error}", field=name) from error


def in_utc(value: Any) -> datetime:
    """Return a time of RFC 3339 in UTC; raise ValueError for anything else."""
    message = "must be a time like 2027-05-31T12:00:00Z"
    if not isinstance(value, str):
        raise ValueError(message)  # noqa: TRY004 - what validators of schemas raise
    try:
        read = datetime.fromisoformat(value)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(message) from error
