"""Validates the parameters of a request against a schema, and explains the errors."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from domain.core.database.pagination import shorten_parameter_name
from domain.core.errors import InvalidParametersError, InvalidQueryError, InvalidValue
from domain.core.types.base import NO_NUL_PATTERN, GitLabQuery

#: Pattern that matches a pattern of alternative words, such as the `order_by` of a `PagedQuery`.
_CHOICES_PATTERN = re.compile(r"\^(?:\(\?:)?(\w+(?:\|\w+)*)\)?\$")
_INT_ADAPTER: TypeAdapter[int] = TypeAdapter(int)
SchemaT = TypeVar("SchemaT", bound=BaseModel)


def validate_body(schema: type[SchemaT], given_values: Mapping[str, Any]) -> SchemaT:
    """Return the validated parameters of a request.

    Raise InvalidParametersError with all problems if any are invalid.
    """
    try:
        return schema.model_validate(_remove_empty_values(schema, given_values))
    except ValidationError as error:
        raise InvalidParametersError(
            [_build_invalid_value(each) for each in _list_errors(error)]
        ) from error


def validate_query(schema: type[SchemaT], given: Mapping[str, Sequence[str]]) -> SchemaT:
    """Return the validated query parameters of a request for a list.

    Raise InvalidQueryError with all problems if any are invalid.
    """
    unknown = find_unknown_names(schema, given)
    known = {name: values for name, values in given.items() if name not in unknown}
    repeated = [
        name for name, values in known.items() if len(values) > 1 and not name.endswith("[]")
    ]
    problems = [InvalidValue(name, "can be given only once") for name in repeated]
    if unknown and not issubclass(schema, GitLabQuery):
        problems = [*_list_unknown_parameters(schema, unknown), *problems]
    flat = {
        _get_field_name(name): values if name.endswith("[]") else values[0]
        for name, values in known.items()
        if name not in repeated
    }
    try:
        found = schema.model_validate(_remove_empty_values(schema, flat))
    except ValidationError as error:
        problems += [_build_invalid_value(each) for each in _list_errors(error)]
        raise InvalidQueryError(problems) from error
    if problems:
        raise InvalidQueryError(problems)
    return found


def _list_unknown_parameters(
    schema: type[BaseModel], names: Sequence[str]
) -> Sequence[InvalidValue]:
    """Return a problem for each unknown parameter. The last problem lists the known parameters."""
    *first, last = (_build_unknown_name_problem(each) for each in names)
    reason = f"{last.reason}. {_format_known_parameters(schema.model_fields)}"
    return [*first, last._replace(reason=reason)]


def _build_unknown_name_problem(name: str) -> InvalidValue:
    if not name:
        return InvalidValue("", "A parameter has no name")
    return InvalidValue(shorten_parameter_name(name), "is not a known parameter")


def normalize_numbers(
    schema: type[BaseModel], given_values: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the parameters, with integers in their canonical form, such as `5` for `05`."""
    numbers = {
        name: _normalize_number(given_values[name])
        for name, field in schema.model_fields.items()
        if field.annotation is int and name in given_values
    }
    return {**given_values, **numbers}


def _normalize_number(value: Any) -> Any:
    try:
        return str(_INT_ADAPTER.validate_python(value))
    except ValidationError:
        return value  # The schema reports the error.


def find_unknown_names(schema: type[BaseModel], given_names: Iterable[str]) -> Sequence[str]:
    """Return the names of the parameters that a schema does not have."""
    known = {name for field in schema.model_fields for name in _list_names(schema, field)}
    return [name for name in given_names if _get_field_name(name) not in known]


def _list_names(schema: type[BaseModel], field: str) -> Sequence[str]:
    """Return the name of a field and the former names that are still accepted."""
    alias = schema.model_fields[field].validation_alias
    return [str(each) for each in alias.choices] if isinstance(alias, AliasChoices) else [field]


def _get_field_name(name: str) -> str:
    return name.removesuffix("[]")


def _format_known_parameters(known: Mapping[str, Any]) -> str:
    return f"Known parameters: {', '.join(known)}" if known else "This URL has no parameters"


def _remove_empty_values(
    schema: type[BaseModel], given_values: Mapping[str, Any]
) -> dict[str, Any]:
    """Remove empty values, which count as missing unless the field allows them."""
    takes = _find_fields_allowing_empty(schema)
    return {
        name: value
        for name, value in given_values.items()
        if not (
            (value == "" and name not in takes[str]) or (value is None and name not in takes[None])
        )
    }


@cache
def _find_fields_allowing_empty(
    schema: type[BaseModel],
) -> Mapping[type[str] | None, frozenset[str]]:
    """Return the names of the fields that allow empty strings or null, by type (`str` or None)."""
    kinds = {
        name: set(_list_union_types(field.annotation))
        for key, field in schema.model_fields.items()
        for name in _list_names(schema, key)
    }
    return {
        str: frozenset(name for name, found in kinds.items() if str in found),
        None: frozenset(name for name, found in kinds.items() if NoneType in found),
    }


def _list_union_types(annotation: Any) -> Sequence[Any]:
    """Return the types of a union, without their annotations."""
    if get_origin(annotation) is Annotated:
        return _list_union_types(get_args(annotation)[0])
    if get_origin(annotation) is None or get_origin(annotation) in {tuple, list, dict, Literal}:
        return (annotation,)
    return [part for each in get_args(annotation) for part in _list_union_types(each)]


def _list_errors(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


def _build_invalid_value(error: ErrorDetails) -> InvalidValue:
    # Pydantic appends `[key]` to the path of an invalid key.
    field = ".".join(str(part) for part in error["loc"] if part != "[key]")
    return InvalidValue(field=field, reason=_format_reason(error))


def _format_reason(error: ErrorDetails) -> str:
    """Return the reason why a value is invalid, as a phrase that follows the name of its field."""
    found, details = error["type"], error.get("ctx", {})
    if found == "value_error":
        return str(details["error"])
    if found in {"literal_error", "enum"}:
        return _format_choices_reason(_format_choices(details["expected"]))
    if found == "string_pattern_mismatch":
        return _format_pattern_reason(details["pattern"])
    if found in _BOUND_REASONS:
        return _BOUND_REASONS[found].format(**details)
    return next(
        (text for beginning, text in _REASONS_BY_PREFIX if found.startswith(beginning)),
        f"is not valid: {error['msg']}",
    )


def _format_pattern_reason(pattern: str) -> str:
    if pattern == NO_NUL_PATTERN:
        return "must not contain a NUL character"
    if words := _CHOICES_PATTERN.fullmatch(pattern):
        return _format_choices_reason(words[1].replace("|", ", "))
    return f"must match `{pattern}`"


def _format_choices_reason(choices: str) -> str:
    return f"must be one of {choices}" if ", " in choices else f"must be {choices}"


def _format_choices(expected: str) -> str:
    """Convert Pydantic's `'a', 'b' or 'c'` to `a, b, c`."""
    return expected.replace("' or '", "', '").replace("'", "")


#: Reasons by Pydantic's error type. The details of the error replace the placeholders.
_BOUND_REASONS = {
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "can have at most {max_length} characters",
    "string_too_short": "has too few characters. The minimum is {min_length}",
    "too_long": "has too many items. The maximum is {max_length}",
    "too_short": "has too few items. The minimum is {min_length}",
}
#: Reasons by the prefix of Pydantic's error types.
_REASONS_BY_PREFIX = (
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
