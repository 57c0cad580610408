"""The bases of all schemas of the API, and the kinds of their fields.

Each resource has its schemas in a file beside this one: what a list can be asked for (`Query`),
what a request may set (`Body`) and what is returned (`Resource`). They check requests, write
responses and describe both at /api/openapi.json.
"""

from collections.abc import Sequence
from datetime import date, datetime
from functools import cache
from typing import Annotated, Any, Literal

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
    field_validator,
)

from domain.clock import written
from domain.database.list_queries import LONGEST_SEARCH
from domain.database.paging import LARGEST_ID, ListPart, read_cursor
from web.api.parameters import in_utc

LARGEST_NUMBER = 2**31 - 1
_LARGEST_PAGE = 100
_USUAL_PAGE = 20
WITHOUT_NUL = r"^[^\x00]*$"
_URL: TypeAdapter[AnyUrl] = TypeAdapter(AnyUrl)


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
Text = Annotated[str, StringConstraints(pattern=WITHOUT_NUL)]
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


@cache
def _absent_fields(schema: type[GitLabQuery]) -> Sequence[str]:
    return [name for name, field in schema.model_fields.items() if _ABSENT in field.metadata]


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
