"""What a type of integration declares: a format in which alerts arrive, or a link elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar, NamedTuple

import orjson

from domain.alerts.formats.snippets import Snippet, curl, python
from domain.alerts.reading.body import checked_object, read_json
from domain.alerts.reading.incoming import IncomingAlert, ParsedBody, UnreadableBody
from domain.alerts.reading.mapping import UNMAPPED, FieldMapping
from domain.alerts.reading.paths import has_path, path_of, resolve

#: How a warning or an error begins that says that a body is in the format of another type.
LOOKS_LIKE = "This looks like"
#: How times can be written, for descriptions of bodies.
TIMES = "RFC 3339, RFC 2822, or seconds or milliseconds since 1970."


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The settings of the instance for reading bodies."""

    #: Largest depth of nested arrays and objects.
    nesting_limit: int
    #: The feature flag generic_alert_fingerprinting.
    automatic_fingerprint: bool


@dataclass(frozen=True, kw_only=True)
class ApiUrl:
    """The API URL that integrations of a type have."""

    help: str
    #: What an integration without one is given.
    usual: str | None = None
    #: Why one that is missing or malformed is refused; empty if it may be missing.
    refusal: str = ""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A monitoring tool, and how its bodies are known."""

    name: str
    #: The paths that its bodies have, whatever their value, with dots and separated by spaces.
    marks: str
    #: A path whose text begins like this, for bodies that keys alone do not tell apart.
    beginning: tuple[str, str] | None = None
    #: What to set in the tool, in a sentence.
    hint: str = ""

    def knows(self, payload: Mapping[str, object]) -> bool:
        """Return whether a body is one of the tool's."""
        if not all(has_path(payload, path_of(mark)) for mark in self.marks.split()):
            return False
        if self.beginning is None:
            return True
        path, beginning = self.beginning
        return str(resolve(payload, path_of(path))).startswith(beginning)

    @property
    def mapping(self) -> FieldMapping:
        """How its bodies are read."""
        return UNMAPPED


class Guide(NamedTuple):
    """A guide of docs/guides with the name of its tool."""

    name: str
    words: str


class GroupingRule(NamedTuple):
    """A way to make a fingerprint, as a sentence, and the fields that it uses."""

    fingerprint: bytes | None
    sentence: str
    fields: object


class IntegrationType:
    """What an integration is; `domain/alerts/formats/registry.py` lists the types."""

    #: Stored, and shown by the API and commands; at most 16 characters.
    name: ClassVar[str]
    #: The name that pages show.
    label: ClassVar[str]
    #: What it takes, in a sentence that begins with its name.
    help: ClassVar[str]
    #: None: integrations of the type have no API URL.
    api_url: ClassVar[ApiUrl | None] = None
    #: Whether senders can post to it, so that it has a URL, keys and deliveries.
    receives: ClassVar[bool] = False
    #: Whether no other integration can be active beside it.
    takes_over: ClassVar[bool] = False
    #: Whether a custom mapping says from which keys the fields of an alert are read.
    has_mapping: ClassVar[bool] = False
    #: Whether integrations choose which labels name environment and service.
    has_labels: ClassVar[bool] = False


class Link(IntegrationType):
    """A link to a tool that takes over paging while it is active; it receives nothing."""

    takes_over = True


class Format(IntegrationType, ABC):
    """A format in which alerts arrive."""

    receives = True
    #: What requests declare their bodies to be. `application/<name>+json` counts as the JSON of the
    #: first, and other suffixes likewise.
    media_types: ClassVar[Sequence[str]] = ("application/json",)
    #: Whether requests of Amazon SNS are read, which do not declare that they are JSON.
    takes_sns: ClassVar[bool] = False
    #: Whether its keys are routing keys at the addresses of PagerDuty's Events API.
    takes_events: ClassVar[bool] = False
    #: Whether a body is a whole group of alerts, for which the larger limit of bytes holds.
    takes_groups: ClassVar[bool] = False
    #: Whether alerts may have Markdown for incidents: bodies without any are not read again.
    has_markdown: ClassVar[bool] = False
    #: The type that describes its bodies at /api/openapi.json; bodies are not checked by it.
    body: ClassVar[Any] = dict[str, Any]
    #: The response to a delivery over the rate limit after which its senders try again.
    retry_status: ClassVar[HTTPStatus] = HTTPStatus.TOO_MANY_REQUESTS
    #: The tools that post it, for recognition; the first that knows a payload counts.
    tools: ClassVar[Sequence[Tool]] = ()
    #: The guides that its integrations show.
    guides: ClassVar[Sequence[Guide]] = (Guide("curl", "curl"),)

    def read(
        self, body: bytes, *, now: datetime, reading: Reading, mapping: FieldMapping = UNMAPPED
    ) -> ParsedBody:
        """Parse a body and read its alerts; raise UnreadableBody or the errors of `parse`."""
        value = self.decode(body, reading=reading)
        return self.parse(value, now=now, reading=reading, mapping=mapping)

    def decode(self, body: bytes, *, reading: Reading) -> object:
        """Return the value of a body, which the other methods take; raise UnreadableBody."""
        return read_json(body, nesting_limit=reading.nesting_limit)

    def stored_value(self, body: bytes | None, *, reading: Reading) -> object:
        """Return the value of a stored body, or None if it is gone or cannot be read any more."""
        with suppress(UnreadableBody):
            return self.decode(body or b"", reading=reading)
        return None

    @abstractmethod
    def parse(
        self, value: object, *, now: datetime, reading: Reading, mapping: FieldMapping = UNMAPPED
    ) -> ParsedBody:
        """Read the alerts of a body; raise an error of `domain/alerts/reading/incoming.py`.

        Of the mapping, formats without one use the words for severities alone.
        """

    @abstractmethod
    def example(self, started: str) -> Mapping[str, Any]:
        """Return an example body with an alert that began at a time."""

    def example_body(self, *, now: datetime) -> str:
        """Return the example body as senders post it: as indented JSON."""
        return orjson.dumps(self.example(_written(now)), option=orjson.OPT_INDENT_2).decode()

    def snippets(self, url: str, key: str, *, base_url: str, now: datetime) -> tuple[Snippet, ...]:
        """Return the snippets for configurations of senders, with URL and key filled in."""
        del base_url
        body = self.example(_written(now - timedelta(minutes=1)))
        return (curl(url, key, body), python(url, key, body))

    def items_of(self, value: object) -> Sequence[object]:
        """Return the parts of a body that become alerts, in their order."""
        return value if isinstance(value, list) else (value,)

    def body_of(self, sample: Mapping[str, object]) -> object:
        """Return the body that a sample is, or is an item of."""
        return sample

    def only_item(self, value: object, item_index: int) -> Mapping[str, object]:
        """Return the body reduced to one of its items, so that the others need not be read."""
        items = self.items_of(value)
        return checked_object(items[item_index] if item_index < len(items) else value)

    def shown_part(self, only: Mapping[str, object]) -> Mapping[str, object]:
        """Return what the page of an alert shows of a body that was reduced to its item."""
        return only

    def labels(self, value: object, item_index: int) -> Iterable[object]:
        """Return the objects whose members are the labels of an item, the last over the others."""
        items = self.items_of(value)
        return (items[item_index],) if item_index < len(items) else ()

    def read_by(self, mapping: FieldMapping) -> str:
        """Return how a payload was read, in words that go after the name of the integration."""
        del mapping
        return f"in the format of {self.label}"

    def grouping_rules(
        self, part: Mapping[str, object], item: IncomingAlert, mapping: FieldMapping
    ) -> Iterator[GroupingRule]:
        """Yield the ways in which the fingerprint of an alert may have been made."""
        del part, mapping
        sentence = f"Reports are grouped into one alert by {item.fingerprint_source}."
        yield GroupingRule(item.fingerprint, sentence, {})

    def misread(self, count: int) -> str:
        """Return what deliveries that look like another format are, and where they belong."""
        del count
        return "see their warnings"


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
