"""Validates the parameters of a request against a schema, and explains the errors."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from domain.core.database.paging import shown_name
from domain.core.errors import InvalidParametersError, InvalidQueryError, InvalidValue
from domain.core.types.base import WITHOUT_NUL, GitLabQuery

#: Pattern of a choice of words, which `PagedQuery` uses for orders.
_WORDS = re.compile(r"\^(?:\(\?:)?(\w+(?:\|\w+)*)\)?\$")
_WHOLE: TypeAdapter[int] = TypeAdapter(int)
Schema = TypeVar("Schema", bound=BaseModel)


def read_body(schema: type[Schema], given: Mapping[str, Any]) -> Schema:
    """Return the validated parameters of a request.

    Raise InvalidParametersError with all problems if any are invalid.
    """
    try:
        return schema.model_validate(_without_empty(schema, given))
    except ValidationError as error:
        raise InvalidParametersError([_problem(each) for each in _errors(error)]) from error


def read_query(schema: type[Schema], given: Mapping[str, Sequence[str]]) -> Schema:
    """Return the validated parameters of a list.

    Raise InvalidQueryError with all problems if any are invalid.
    """
    unknown = unknown_names(schema, given)
    known = {name: values for name, values in given.items() if name not in unknown}
    repeated = [
        name for name, values in known.items() if len(values) > 1 and not name.endswith("[]")
    ]
    problems = [InvalidValue(name, "can be given only once") for name in repeated]
    if unknown and not issubclass(schema, GitLabQuery):
        problems = [*_unknown(schema, unknown), *problems]
    flat = {
        _field_name(name): values if name.endswith("[]") else values[0]
        for name, values in known.items()
        if name not in repeated
    }
    try:
        found = schema.model_validate(_without_empty(schema, flat))
    except ValidationError as error:
        problems += [_problem(each) for each in _errors(error)]
        raise InvalidQueryError(problems) from error
    if problems:
        raise InvalidQueryError(problems)
    return found


def _unknown(schema: type[BaseModel], names: Sequence[str]) -> Sequence[InvalidValue]:
    """Return the problems of unknown parameters; the last one lists the known parameters."""
    *first, last = (_unknown_name(each) for each in names)
    reason = f"{last.reason}. {_takes(schema.model_fields)}"
    return [*first, last._replace(reason=reason)]


def _unknown_name(name: str) -> InvalidValue:
    if not name:
        return InvalidValue("", "A parameter has no name")
    return InvalidValue(shown_name(name), "is not a known parameter")


def with_plain_numbers(schema: type[BaseModel], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return parameters with whole numbers in their standard form."""
    numbers = {
        name: _plain_number(given[name])
        for name, field in schema.model_fields.items()
        if field.annotation is int and name in given
    }
    return {**given, **numbers}


def _plain_number(value: Any) -> Any:
    try:
        return str(_WHOLE.validate_python(value))
    except ValidationError:
        return value  # the schema reports the error


def unknown_names(schema: type[BaseModel], given: Iterable[str]) -> Sequence[str]:
    """Return the names of the parameters that a schema does not have."""
    return [name for name in given if _field_name(name) not in schema.model_fields]


def _field_name(name: str) -> str:
    return name.removesuffix("[]")


def _takes(known: Mapping[str, Any]) -> str:
    return f"Known parameters: {', '.join(known)}" if known else "This URL has no parameters"


def _without_empty(schema: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without empty values that count as missing, as in forms."""
    takes = _takes_empty(schema)
    return {
        name: value
        for name, value in given.items()
        if not (
            (value == "" and name not in takes[str]) or (value is None and name not in takes[None])
        )
    }


@cache
def _takes_empty(schema: type[BaseModel]) -> Mapping[type[str] | None, frozenset[str]]:
    """Return the names of fields for which empty text, or null, is a value."""
    kinds = {name: set(_parts(field.annotation)) for name, field in schema.model_fields.items()}
    return {
        str: frozenset(name for name, found in kinds.items() if str in found),
        None: frozenset(name for name, found in kinds.items() if NoneType in found),
    }


def _parts(annotation: Any) -> Sequence[Any]:
    """Return the types of a union, without their annotations."""
    if get_origin(annotation) is Annotated:
        return _parts(get_args(annotation)[0])
    if get_origin(annotation) is None or get_origin(annotation) in {tuple, list, dict, Literal}:
        return (annotation,)
    return [part for each in get_args(annotation) for part in _parts(each)]


def _errors(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


def _problem(error: ErrorDetails) -> InvalidValue:
    field = ".".join(str(part) for part in error["loc"])
    return InvalidValue(field=field, reason=_reason(error))


def _reason(error: ErrorDetails) -> str:
    """Return the reason why a value is invalid, in words that follow its name."""
    found, details = error["type"], error.get("ctx", {})
    if found == "value_error":
        return str(details["error"])
    if found in {"literal_error", "enum"}:
        return _must_be_one_of(_choices(details["expected"]))
    if found == "string_pattern_mismatch":
        return _pattern_reason(details["pattern"])
    if found in _BOUNDS:
        return _BOUNDS[found].format(**details)
    return next(
        (text for beginning, text in _REASONS if found.startswith(beginning)),
        f"is not valid: {error['msg']}",
    )


def _pattern_reason(pattern: str) -> str:
    if pattern == WITHOUT_NUL:
        return "must not contain a NUL character"
    if words := _WORDS.fullmatch(pattern):
        return _must_be_one_of(words[1].replace("|", ", "))
    return f"must match `{pattern}`"


def _must_be_one_of(choices: str) -> str:
    return f"must be one of {choices}" if ", " in choices else f"must be {choices}"


def _choices(expected: str) -> str:
    """Return `a, b, c` for the library's `'a', 'b' or 'c'`."""
    return expected.replace("' or '", "', '").replace("'", "")


#: Reasons by Pydantic's error type; the details of the error replace the placeholders.
_BOUNDS = {
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "can have at most {max_length} characters",
    "string_too_short": "has too few characters. The minimum is {min_length}",
    "too_long": "has too many items. The maximum is {max_length}",
    "too_short": "has too few items. The minimum is {min_length}",
}
#: Reasons by the prefix of Pydantic's error types.
_REASONS = (
    ("missing", "is missing"),
    ("extra", "is not a known parameter or field"),
    ("string_unicode", "contains an invalid character"),
    ("string", "must be a string"),
    ("int", "must be a whole number"),
    ("float", "must be a number"),
    ("bool", "must be true or false"),
    ("datetime", "must be a time like 2027-05-31T12:00:00Z"),
    ("date", "must be a date like 2027-05-31"),
    ("list", "must be a list"),
    ("tuple", "must be a list"),
    ("dict", "must be an object"),
    ("model", "must be an object"),
)
