"""Base classes of the types that interfaces and actions exchange, and their field types.

A feature declares its types in `domain/<feature>/types.py`: parameters of lists (`Query`),
parameters of changes (`Body`) and results (`Resource`). The types validate requests, serialize
responses and describe both at /api/openapi.json. Commands are generated from the types. Pydantic
builds each type when it is first used. A process uses few types, and building all of them would
take a twelfth of its startup time.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    StringConstraints,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo

from domain.core.clock import format_api_time
from domain.core.database.pagination import (
    MAX_ID,
    MAX_SEARCH_TEXT_LENGTH,
)
from domain.core.durations import format_duration, parse_duration
from domain.core.errors import InvalidError, InvalidParametersError, InvalidValue
from domain.core.grace_period import GracePeriod

Item = TypeVar("Item", bound=BaseModel)
BodyT = TypeVar("BodyT", bound="Body")
Value = TypeVar("Value")

MAX_NUMBER = 2**31 - 1
NO_NUL_PATTERN = r"^[^\x00]*$"
_URL_ADAPTER: TypeAdapter[AnyUrl] = TypeAdapter(AnyUrl)


def _parse_utc(value: Any) -> datetime:
    """Parse a time in RFC 3339 format, and convert it to UTC.

    Raise ValueError for other values.
    """
    read = _parse_local_or_utc(value)
    if read.tzinfo is None:
        example = read.isoformat(timespec="seconds")
        raise ValueError(f"must have an offset, such as {example}Z or {example}+02:00")
    return read


def _parse_local_or_utc(value: Any) -> datetime:
    """Parse a time in UTC, or a local time if it has no offset.

    A time with an offset is converted to UTC. Raise ValueError for other values.
    """
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(read, datetime):
            return read if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError("must be a time like 2027-05-31T12:00:00Z") from error
    raise ValueError("must be a time like 2027-05-31T12:00:00Z")


def _parse_utc_or_day(value: Any) -> datetime:
    """Parse a time in RFC 3339 format, or a date as the start of the day in UTC.

    Raise ValueError for other values.
    """
    with suppress(ValueError):
        if isinstance(value, str):
            return datetime.combine(date.fromisoformat(value), time(), UTC)
    return _parse_utc(value)


def _check_not_empty(value: Any) -> Any:
    if value in ("", ()):
        raise ValueError("is empty")
    return value


def _check_one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be a single line without control characters")
    return text.strip()


def _check_web_url(text: str) -> str:
    try:
        scheme = _URL_ADAPTER.validate_python(text).scheme if text else "https"
    except ValueError:
        scheme = ""
    if scheme not in {"http", "https"}:
        raise ValueError("must be an http or https URL")
    return text


def split_words(value: Any) -> Any:
    """Split a string at commas and spaces, and return other values unchanged."""
    return value.replace(",", " ").split() if isinstance(value, str) else value


def remove_duplicates(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the values without duplicates, in their original order."""
    return tuple(dict.fromkeys(values))


def join_option_values(value: Any) -> Any:
    """Join the values of a repeated command-line option into one string."""
    is_words = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    return " ".join(value) if is_words else value


def _ignore_value(_given: Any) -> str:
    return ""


def build_choices_schema(*words: str) -> WithJsonSchema:
    """Return the JSON schema for a string in a response, with its possible values.

    The values are not validated.
    """
    return WithJsonSchema({"type": "string", "enum": [*words]})


#: Text that both databases can store.
Text = Annotated[str, StringConstraints(pattern=NO_NUL_PATTERN)]
#: URL with http or https, or an empty string for no URL.
WebUrl = Annotated[Text, AfterValidator(_check_web_url)]
#: Single line without control characters or surrounding spaces.
Line = Annotated[Text, AfterValidator(_check_one_line)]
#: Non-empty line.
Name = Annotated[Line, AfterValidator(_check_not_empty)]
#: Search text for a list.
Search = Annotated[Text, Field(max_length=MAX_SEARCH_TEXT_LENGTH)]
#: Required text, whose characters are checked when the text is stored.
RequiredText = Annotated[str, AfterValidator(_check_not_empty)]
#: ID of a row.
Id = Annotated[int, Field(ge=1, le=MAX_ID)]
#: Words: a JSON array, or text separated by commas or spaces.
Words = Annotated[tuple[Text, ...], BeforeValidator(split_words)]
#: Words, at least one of which is required.
RequiredWords = Annotated[Words, AfterValidator(_check_not_empty)]
#: Numbers: a JSON array, or text separated by commas or spaces.
Numbers = Annotated[
    tuple[Annotated[int, Field(ge=1, le=MAX_NUMBER)], ...], BeforeValidator(split_words)
]
#: Time in a request, with its offset.
RequestTime = Annotated[
    datetime, BeforeValidator(_parse_utc), WithJsonSchema({"type": "string", "format": "date-time"})
]
#: Time in a request about a schedule. A time without an offset is a local time in the schedule's
#: time zone, which `with_time_zone` applies.
RequestLocalTime = Annotated[
    datetime,
    BeforeValidator(_parse_local_or_utc),
    WithJsonSchema(
        {
            "type": "string",
            "description": "Time with an offset, or local time in the schedule's time zone.",
            "examples": ["2027-05-31T12:00:00Z", "2027-05-31T14:00"],
        }
    ),
]
#: Time parameter of a list endpoint that GitLab also has. A date means the start of the day in UTC.
RequestTimeOrDay = Annotated[
    datetime,
    BeforeValidator(_parse_utc_or_day),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
            ]
        }
    ),
]
#: Date in a request.
RequestDay = Annotated[date, WithJsonSchema({"type": "string", "format": "date"})]
#: Time in a response: UTC with milliseconds and `Z`.
Time = Annotated[
    datetime,
    PlainSerializer(format_api_time, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


@dataclass(frozen=True)
class Option:
    """The command-line option of a field, if it differs from the field's name.

    Write `Option("--for")`, or `Option("--on/--off")` for a flag. `null` adds a flag that sends
    null: `Option("--policy", null="--nobody")`. `former` is an older name that is still accepted.
    """

    words: str
    null: str = ""
    former: str = ""


@dataclass(frozen=True)
class Argument:
    """The name of a field that the command line takes as an argument instead of an option."""

    name: str


def _parse_duration_value(value: Any, info: ValidationInfo) -> timedelta:
    if isinstance(value, timedelta):
        return value
    text = str(value)
    is_number = text.isascii() and text.isdecimal()
    try:
        return parse_duration(f"{text}s" if is_number else text)
    except InvalidError as error:
        reason = str(error).removesuffix(".")
        problem = InvalidValue(field=info.field_name or "", reason=reason)
        raise InvalidParametersError([problem]) from error


def _parse_overlap(value: Any) -> Any:
    return timedelta(0) if value == GracePeriod.NOW.key else value


#: Duration as a string, such as `1h30m`, or as a number of seconds. It is serialized as a string.
Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration_value),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string"}),
]
#: Time for which a replaced object stays valid: a duration, or `now` for no overlap.
Overlap = Annotated[Duration, BeforeValidator(_parse_overlap), Option("--overlap")]


class Body(BaseModel):
    """Parameters of a request that makes changes, from its query, form or JSON body.

    Unknown parameters are ignored, since clients written for GitLab send parameters that Gatebell
    does not have. Pydantic records which fields were given.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    @property
    def given_values(self) -> Mapping[str, Any]:
        """The values of the fields that the request contained, by name."""
        return {name: getattr(self, name) for name in self.model_fields_set}


def _remove_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def make_fields_optional(body: type[BodyT]) -> type[BodyT]:
    """Return a copy of a body type in which all fields are optional.

    Omitted fields are None, even if their types do not include None. `given_values` contains only
    the fields that were sent.
    """
    fields: dict[str, Any] = {
        name: (
            Annotated[each.annotation, *each.metadata] if each.metadata else each.annotation,
            Field(default=None, description=each.description, json_schema_extra=_remove_default),
        )
        for name, each in body.model_fields.items()
    }
    made: type[BodyT] = create_model(
        body.__name__, __base__=body, __module__=body.__module__, __doc__=body.__doc__, **fields
    )
    return made


_WITHOUT_EFFECT = BeforeValidator(_ignore_value)
#: Parameter that GitLab uses for extra output or lookups, and that has no effect in Gatebell.
WithoutEffect = Annotated[
    str,
    _WITHOUT_EFFECT,
    Field(description="Accepted for compatibility with GitLab, but ignored."),
]
_ABSENT = object()
#: GitLab filter for a property that Gatebell does not have. With `true`, the list is empty.
AbsentFlag = Annotated[
    bool,
    Field(
        description="Accepted for compatibility with GitLab. Gatebell does not have this property, "
        "so a request with `true` returns an empty list."
    ),
    _ABSENT,
]
#: GitLab filter for a property that Gatebell does not have. With any value, the list is empty.
AbsentWord = Annotated[
    Text,
    Field(
        description="Accepted for compatibility with GitLab. Gatebell does not have this property, "
        "so a request with this filter returns an empty list."
    ),
    _ABSENT,
]


def is_effective_parameter(field: FieldInfo) -> bool:
    """Return False for a parameter that is accepted only for compatibility with GitLab."""
    return not {id(_WITHOUT_EFFECT), id(_ABSENT)} & {id(each) for each in field.metadata}


class Query(BaseModel):
    """Parameters of a GET request.

    Unknown parameters are errors, so that misspelled filters are noticed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class GitLabQuery(Query):
    """Parameters of a GET request that GitLab's API also supports.

    Unknown parameters are ignored and reported. Each parameter that GitLab documents is a field.
    Parameters about data that Gatebell does not have are of type `WithoutEffect`, `AbsentFlag` or
    `AbsentWord`.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    @property
    def matches_nothing(self) -> bool:
        """True if the query filters by a property that Gatebell does not have."""
        return any(getattr(self, name) for name in _list_unsupported_fields(type(self)))


@cache
def _list_unsupported_fields(schema: type[GitLabQuery]) -> Sequence[str]:
    return [name for name, field in schema.model_fields.items() if _ABSENT in field.metadata]


class Resource(BaseModel):
    """The base class of results in responses."""

    model_config = ConfigDict(frozen=True, from_attributes=True, defer_build=True)


def get_column_values(row: object, view: type[Any]) -> dict[str, Any]:
    """Return a row's values for the columns that match fields of a resource or dataclass."""
    names = view.model_fields if issubclass(view, Resource) else view.__dataclass_fields__
    return {name: getattr(row, name) for name in names if hasattr(row, name)}


class Done(RootModel[Literal[True]]):
    """The result `true`, which clients written for GitLab expect after some actions."""

    model_config = ConfigDict(frozen=True)


class SecretResource(Resource):
    """The base class of results that show a secret once. Such responses are not cached."""
