"""The bases of all schemas of the API, and the reader of parameters.

Each resource has its schemas in a file beside this one: what a list can be asked for (`Query`),
what a request may set (`Body`) and what is returned (`Resource`). They check requests, write
responses and describe both at /api/openapi.json.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

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
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import ErrorDetails

from domain.clock import written
from domain.database.list_queries import LONGEST_SEARCH
from domain.database.paging import LARGEST_ID, ListPart, read_cursor
from domain.errors import InvalidParametersError, InvalidValue, QueryError
from web.api.parameters import in_utc

LARGEST_NUMBER = 2**31 - 1
_LARGEST_PAGE = 100
_USUAL_PAGE = 20
#: So much of an unknown name is repeated in an error.
_LONGEST_ECHO = 50
_WITHOUT_NUL = r"^[^\x00]*$"
#: A pattern that is a choice of words, as `PagedQuery` has for orders.
_WORDS = re.compile(r"\^(?:\(\?:)?(\w+(?:\|\w+)*)\)?\$")
_URL: TypeAdapter[AnyUrl] = TypeAdapter(AnyUrl)
_WHOLE: TypeAdapter[int] = TypeAdapter(int)


def _not_empty(value: Any) -> Any:
    if value in ("", ()):
        message = "is empty"
        raise ValueError(message)
    return value


def _web_url(text: str) -> str:
    try:
        scheme = _URL.validate_python(text).scheme if text else "https"
    except ValueError:
        scheme = ""
    if scheme not in {"http", "https"}:
        message = "must be a URL with http or https"
        raise ValueError(message)
    return text


def split(value: Any) -> Any:
    """Return the words of a text that is separated by commas or spaces."""
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _first_page(number: int) -> int:
    # A client that counts pages would read the first one for ever.
    if number not in {0, 1}:
        message = "can only be 1: follow the link with rel=next to the next page"
        raise ValueError(message)
    return 1


def _dropped(_given: Any) -> str:
    return ""


def one_of(*words: str) -> WithJsonSchema:
    """Describe a text of a response by what it can be; the text itself is not checked."""
    return WithJsonSchema({"type": "string", "enum": [*words]})


#: A text that both databases can store.
Text = Annotated[str, StringConstraints(pattern=_WITHOUT_NUL)]
#: A URL with http or https, or an empty text, which means none.
WebUrl = Annotated[Text, AfterValidator(_web_url)]
#: A text to search for.
Search = Annotated[Text, Field(max_length=LONGEST_SEARCH)]
#: A text that is needed; where it is stored, its characters are checked.
RequiredText = Annotated[str, AfterValidator(_not_empty)]
#: The id of a row.
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
#: Words: a JSON array, or a text separated by commas or spaces.
Words = Annotated[tuple[Text, ...], BeforeValidator(split)]
#: Words, at least one.
RequiredWords = Annotated[Words, AfterValidator(_not_empty)]
#: Numbers: a JSON array, or a text separated by commas or spaces.
Numbers = Annotated[
    tuple[Annotated[int, Field(ge=1, le=LARGEST_NUMBER)], ...], BeforeValidator(split)
]
#: A time of a request; without an offset it is in UTC.
GivenTime = Annotated[
    datetime, BeforeValidator(in_utc), WithJsonSchema({"type": "string", "format": "date-time"})
]
#: The number of a page; clients written for GitLab send 0 for the first one.
PageNumber = Annotated[
    int, Field(ge=0, le=LARGEST_NUMBER), AfterValidator(lambda number: number or 1)
]
#: The number of items of a page; clients written for GitLab send 0 for the usual one.
PageSize = Annotated[
    int,
    Field(ge=0, le=LARGEST_NUMBER, description="At most 100 are returned."),
]
#: A day of a request.
GivenDay = Annotated[date, WithJsonSchema({"type": "string", "format": "date"})]
#: A time of a response: UTC with milliseconds and `Z`.
Time = Annotated[
    datetime,
    PlainSerializer(written, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Body(BaseModel):
    """Parameters of a request that changes something: from its query, form or JSON body.

    Unknown ones are ignored: clients written for GitLab send more than a resource has here.
    Pydantic tells which were given.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)


#: What GitLab adds to its responses, or how it looks for items: without effect here.
WithoutEffect = Annotated[
    str,
    BeforeValidator(_dropped),
    Field(description="For clients written for GitLab; it has no effect."),
]
_ABSENT = object()
#: A filter of GitLab by something that nothing here has: `true` leaves nothing.
AbsentFlag = Annotated[
    bool,
    Field(
        description="For clients written for GitLab: nothing here has it, so true finds nothing."
    ),
    _ABSENT,
]
#: A filter of GitLab by something that nothing here has: any value leaves nothing.
AbsentWord = Annotated[
    Text,
    Field(
        description="For clients written for GitLab: nothing here has it, so any value finds "
        "nothing."
    ),
    _ABSENT,
]


class Query(BaseModel):
    """Parameters of a GET; unknown ones are an error, so that a misspelt filter is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class GitLabQuery(Query):
    """Parameters of a GET that GitLab has as well: unknown ones are ignored, and named.

    What GitLab documents is a field: with its effect where the data is here, otherwise of one of
    the three types above.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    @property
    def finds_nothing(self) -> bool:
        """Whether it asks for what nothing here has."""
        return any(getattr(self, name) for name in _absent_fields(type(self)))


def _size(per_page: int, schema: type[Query]) -> int:
    usual: int = schema.model_fields["per_page"].default
    return min(per_page or usual, _LARGEST_PAGE)


class OffsetQuery(Query):
    """Parameters of a list with numbered pages.

    Clients send `pagination` and `order_by` with every list: they are accepted, and the pages are
    numbered in any case.
    """

    page: PageNumber = 1
    per_page: PageSize = _USUAL_PAGE
    pagination: Literal["offset", "legacy", "keyset"] = "offset"

    @property
    def size(self) -> int:
        """The number of items of a page."""
        return _size(self.per_page, type(self))

    @property
    def offset(self) -> int:
        """The number of items before the page."""
        return (self.page - 1) * self.size


class KeysetQuery(Query):
    """Parameters of a list whose next page the `Link` header leads to, without page numbers."""

    cursor: str = Field(default="", description="From the link to the next page.")
    per_page: PageSize = _USUAL_PAGE
    pagination: Literal["keyset"] = "keyset"
    page: Annotated[int, AfterValidator(_first_page)] = Field(
        default=1, description="Only 1: the link with rel=next leads to the next page."
    )

    @property
    def size(self) -> int:
        """The number of items of a page."""
        return _size(self.per_page, type(self))


class PagedQuery(OffsetQuery):
    """Parameters of a list that has both: numbered pages, and with `pagination=keyset` links.

    A list with other orders, or with another usual one, overrides `order_by` and `sort`.
    """

    cursor: str = Field(default="", description="Of a keyset page: from the link to the next page.")
    #: Overridden by a `Literal`: mypy takes one for a `str`, and none for another `Literal`.
    order_by: str = Field(default="id", pattern="^id$")
    sort: Literal["asc", "desc"] = "desc"

    @field_validator("pagination")
    @classmethod
    def _counts_no_keyset_pages(cls, value: str, others: ValidationInfo) -> str:
        if value == "keyset" and others.data.get("page", 1) != 1:
            message = (
                "can only be keyset without a page number: the link with rel=next leads to the "
                "next part of this list"
            )
            raise ValueError(message)
        return value

    @field_validator("cursor")
    @classmethod
    def _is_of_a_keyset_page(cls, value: str, others: ValidationInfo) -> str:
        if value and others.data.get("pagination") != "keyset":
            message = "is for pagination=keyset"
            raise ValueError(message)
        return value

    @field_validator("order_by")
    @classmethod
    def _is_the_key_of_keyset_pages(cls, value: str, others: ValidationInfo) -> str:
        if value != "id" and others.data.get("pagination") == "keyset":
            message = "can only be id with pagination=keyset"
            raise ValueError(message)
        return value

    @property
    def part(self) -> ListPart:
        """The requested part; raises QueryError for a forged cursor."""
        is_by_key = self.pagination == "keyset"
        return ListPart(
            size=self.size,
            offset=self.offset,
            is_by_key=is_by_key,
            last_id=read_cursor(self.cursor),
            # Without a word of its own, a keyset page is ordered by id.
            order_by="id" if is_by_key else self.order_by,
            is_descending=self.sort == "desc",
        )


class Resource(BaseModel):
    """What a response is made of."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Done(RootModel[Literal[True]]):
    """`true`, which clients written for GitLab wait for after some actions."""

    model_config = ConfigDict(frozen=True)


class SecretResource(Resource):
    """What a response is made of that shows a secret once: nobody keeps a copy of it."""


Schema = TypeVar("Schema", bound=BaseModel)


def read_body(schema: type[Schema], given: Mapping[str, Any]) -> Schema:
    """Return the parameters of a request, or raise InvalidParametersError with all mistakes."""
    try:
        return schema.model_validate(_without_empty(schema, given))
    except ValidationError as error:
        raise InvalidParametersError([_problem(each) for each in _errors(error)]) from error


def read_query(schema: type[Schema], given: Mapping[str, Sequence[str]]) -> Schema:
    """Return the parameters of a list, or raise QueryError for the first mistake."""
    unknown = unknown_names(schema, given)
    if unknown and not issubclass(schema, GitLabQuery):
        shown, takes = _shown(unknown[0]), _takes(schema.model_fields)
        raise QueryError(f"{shown} is not a known parameter; {takes}.", field=unknown[0])
    known = {name: values for name, values in given.items() if name not in unknown}
    for name, values in known.items():
        if len(values) > 1 and not name.endswith("[]"):
            raise QueryError(f"{name} can be given only once.", field=name)
    flat = {
        _field_name(name): values if name.endswith("[]") else values[0]
        for name, values in known.items()
    }
    try:
        return schema.model_validate(_without_empty(schema, flat))
    except ValidationError as error:
        problem = _problem(_errors(error)[0])
        raise QueryError(f"{problem.field} {problem.reason}.", field=problem.field) from error


def with_plain_numbers(schema: type[BaseModel], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return parameters with each whole number in its usual digits, however it was written."""
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
        return value  # the schema says what is wrong with it


def unknown_names(schema: type[BaseModel], given: Iterable[str]) -> Sequence[str]:
    """Return the names of those parameters that a schema does not have."""
    return [name for name in given if _field_name(name) not in schema.model_fields]


@cache
def _absent_fields(schema: type[GitLabQuery]) -> Sequence[str]:
    return [name for name, field in schema.model_fields.items() if _ABSENT in field.metadata]


def _field_name(name: str) -> str:
    return name.removesuffix("[]")


def _shown(name: str) -> str:
    if not name:
        return "A value without a name"
    return f"{name[:_LONGEST_ECHO]}…" if len(name) > _LONGEST_ECHO else name


def _takes(known: Mapping[str, Any]) -> str:
    return f"known parameters: {', '.join(known)}" if known else "this URL has no parameters"


def _without_empty(schema: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out empty values where they are no value: they count as missing, as in forms."""
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
    """Return the names of fields for which an empty text, or null, is a value."""
    kinds = {name: set(_parts(field.annotation)) for name, field in schema.model_fields.items()}
    return {
        str: frozenset(name for name, found in kinds.items() if str in found),
        None: frozenset(name for name, found in kinds.items() if NoneType in found),
    }


def _parts(annotation: Any) -> Sequence[Any]:
    """Return the types of a union, without what is annotated to them."""
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
    """Return what is wrong with a value, in words that follow its name."""
    found, details = error["type"], error.get("ctx", {})
    if found == "value_error":
        return str(details["error"])
    if found in {"literal_error", "enum"}:
        return f"must be one of {_choices(details['expected'])}"
    if found == "string_pattern_mismatch":
        return _pattern_reason(details["pattern"])
    if found in _BOUNDS:
        return _BOUNDS[found].format(*details.values())
    return next(
        (text for beginning, text in _REASONS if found.startswith(beginning)),
        f"is not valid: {error['msg']}",
    )


def _pattern_reason(pattern: str) -> str:
    if pattern == _WITHOUT_NUL:
        return "must not contain a NUL character"
    if words := _WORDS.fullmatch(pattern):
        return f"must be one of {words[1].replace('|', ', ')}"
    return f"must match {pattern}"


def _choices(expected: str) -> str:
    """Return `a, b, c` for the library's `'a', 'b' or 'c'`."""
    return expected.replace("' or '", "', '").replace("'", "")


#: By the library's name of the error; the bound fills the gap.
_BOUNDS = {
    "greater_than_equal": "must be at least {}",
    "less_than_equal": "must be at most {}",
    "string_too_long": "can have at most {} characters",
    "string_too_short": "must have at least {} characters",
}
#: By how the library's names of errors begin.
_REASONS = (
    ("missing", "is missing"),
    ("extra", "is not a known parameter or field"),
    ("string_unicode", "contains something that is not a character"),
    ("string", "must be a string"),
    ("int", "must be a whole number"),
    ("float", "must be a number"),
    ("bool", "must be true or false"),
    ("datetime", "must be a time like 2027-05-31T12:00:00Z"),
    ("date", "must be a date like 2027-05-31"),
    ("list", "must be a list"),
    ("tuple", "must be a list"),
    ("too_long", "has too many items"),
    ("too_short", "has too few items"),
    ("dict", "must be an object"),
    ("model", "must be an object"),
)
