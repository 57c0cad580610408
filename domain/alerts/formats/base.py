"""Base classes for integration types: alert formats, and links to other tools."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar, NamedTuple

import orjson

from domain.alerts.formats.snippets import Snippet, build_general_snippets
from domain.alerts.parsing.incoming_alert import IncomingAlert, ParsedBody, UnreadableBodyError
from domain.alerts.parsing.json_body import parse_json, require_object
from domain.alerts.parsing.mapping import NO_FIELD_MAPPING, FieldMapping
from domain.alerts.parsing.times import format_utc_time
from domain.alerts.tools.base import MonitoringTool

#: Prefix of warnings and errors about bodies that have the format of another integration type.
WRONG_FORMAT_PREFIX = "This looks like"
#: Accepted time formats, appended to descriptions of fields in request bodies.
TIME_NOTATIONS = "in RFC 3339 or RFC 2822 format, or as Unix time in seconds or milliseconds."


@dataclass(frozen=True, kw_only=True)
class ParserSettings:
    """Instance settings that control how bodies are parsed."""

    #: Maximum depth of nested arrays and objects.
    nesting_limit: int
    #: Value of the `generic_alert_fingerprinting` feature flag.
    automatic_fingerprint: bool


@dataclass(frozen=True, kw_only=True)
class ApiUrlSetting:
    """Help text and rules for the API URL of an integration."""

    help: str
    #: Default URL for integrations that are created without a URL.
    default: str | None = None
    #: Error message for a missing or malformed URL. It is empty if the URL is optional.
    error_message: str = ""


class Guide(NamedTuple):
    """A guide in docs/guides, and the name of its tool."""

    name: str
    words: str


class GroupingRule(NamedTuple):
    """The fingerprint that a rule computes, with an explanation and the fields that were used."""

    fingerprint: bytes | None
    sentence: str
    fields: object


class IntegrationType:
    """Base class of all integration types.

    `domain/alerts/formats/registry.py` lists the types.
    """

    #: Name in the database, the API and commands, with at most 16 characters.
    name: ClassVar[str]
    #: Name on web pages.
    label: ClassVar[str]
    #: Sentence that describes the accepted input and begins with the name of the type.
    help: ClassVar[str]
    #: API URL of the type's integrations, or None if they have none.
    api_url: ClassVar[ApiUrlSetting | None] = None
    #: True if the type receives alerts. If so, its integrations have a URL, keys and deliveries.
    receives: ClassVar[bool] = False
    #: True if an active integration of the type excludes all other active integrations.
    takes_over: ClassVar[bool] = False
    #: True if a custom mapping can define which keys alert fields are read from.
    has_mapping: ClassVar[bool] = False
    #: True if integrations can define which labels contain the environment and the service.
    has_labels: ClassVar[bool] = False


class OnCallToolLink(IntegrationType):
    """A link to a tool that takes over paging while the link is active.

    Integrations of this type do not receive alerts.
    """

    takes_over = True


class AlertFormat(IntegrationType, ABC):
    """A format of incoming alerts, with methods that parse and explain request bodies."""

    receives = True
    #: Accepted media types of requests. Types with the suffix of an accepted type, such as
    #: `application/<name>+json`, are also accepted.
    media_types: ClassVar[Sequence[str]] = ("application/json",)
    #: True if requests from Amazon SNS are accepted although they do not declare a JSON media type.
    accepts_sns: ClassVar[bool] = False
    #: True if integration keys can also be used as routing keys for PagerDuty's Events API.
    accepts_events: ClassVar[bool] = False
    #: True if a body contains a whole group of alerts, so that the higher size limit applies.
    accepts_groups: ClassVar[bool] = False
    #: True if alerts can contain Markdown for incidents. If False, bodies are not parsed again to
    #: find Markdown.
    has_markdown: ClassVar[bool] = False
    #: Type that describes bodies in /api/openapi.json. It is not used for validation.
    body: ClassVar[Any] = dict[str, Any]
    #: Status code that makes senders of this format retry deliveries over the rate limit.
    retry_status: ClassVar[HTTPStatus] = HTTPStatus.TOO_MANY_REQUESTS
    #: Guides that are shown for integrations of this type.
    guides: ClassVar[Sequence[Guide]] = (Guide("curl", "curl"),)

    def list_tools(self) -> Sequence[MonitoringTool]:
        """Return the known tools that send this format.

        The first tool that recognizes a message is used.
        """
        return ()

    def read(
        self,
        body: bytes,
        *,
        now: datetime,
        reading: ParserSettings,
        mapping: FieldMapping = NO_FIELD_MAPPING,
    ) -> ParsedBody:
        """Decode a body and parse its alerts.

        Raise UnreadableBodyError if the body cannot be decoded. `parse` may raise other errors.
        """
        value = self.decode(body, reading=reading)
        return self.parse(value, now=now, reading=reading, mapping=mapping)

    def decode(self, body: bytes, *, reading: ParserSettings) -> object:
        """Decode a body into the value that the other methods accept.

        Raise UnreadableBodyError if the body cannot be decoded.
        """
        return parse_json(body, nesting_limit=reading.nesting_limit)

    def decode_stored_body(self, body: bytes | None, *, reading: ParserSettings) -> object:
        """Decode a stored body, or return None if the body was deleted or cannot be decoded."""
        with suppress(UnreadableBodyError):
            return self.decode(body or b"", reading=reading)
        return None

    @abstractmethod
    def parse(
        self,
        value: object,
        *,
        now: datetime,
        reading: ParserSettings,
        mapping: FieldMapping = NO_FIELD_MAPPING,
    ) -> ParsedBody:
        """Parse the alerts in a body.

        Formats that do not support custom mappings use only the severity words of `mapping`. Raise
        an error from `domain/alerts/parsing/incoming_alert.py` if the body contains no valid alert.
        """

    @abstractmethod
    def example(self, started: str) -> Mapping[str, Any]:
        """Return an example body with one alert that started at the given time."""

    def build_example_body(self, *, now: datetime) -> str:
        """Return the example body as indented JSON, as a sender would post it."""
        return orjson.dumps(self.example(format_utc_time(now)), option=orjson.OPT_INDENT_2).decode()

    def build_recovery(self, value: object, mapping: FieldMapping, *, now: datetime) -> object:
        """Return a copy of a decoded body that resolves the body's alerts.

        Return None if no such copy can be built.
        """
        del self, value, mapping, now
        return None

    def build_snippets(
        self, url: str, key: str, *, base_url: str, body: str
    ) -> tuple[Snippet, ...]:
        """Return configuration snippets for senders, with the URL, the key and a body filled in."""
        del base_url
        return build_general_snippets(url, key, body)

    def list_body_items(self, value: object) -> Sequence[object]:
        """Return the items of a body, in order. Each item becomes one or more alerts."""
        return value if isinstance(value, list) else (value,)

    def list_alert_parts(
        self, value: object, mapping: FieldMapping
    ) -> Iterable[tuple[int, object]]:
        """Return the parts of a body that become alerts, with their indexes."""
        del mapping
        return enumerate(self.list_body_items(value))

    def build_sample_body(self, sample: Mapping[str, object]) -> object:
        """Return a complete body for a sample, which may be a body or one of its items."""
        return sample

    def reduce_body_to_item(
        self, value: object, item_index: int, mapping: FieldMapping = NO_FIELD_MAPPING
    ) -> Mapping[str, object]:
        """Return the body reduced to one item, so that the other items are not parsed."""
        del mapping
        items = self.list_body_items(value)
        return require_object(items[item_index] if item_index < len(items) else value)

    def get_displayed_payload(self, only: Mapping[str, object]) -> Mapping[str, object]:
        """Return the part of a reduced body that is shown on the alert's web page."""
        return only

    def labels(self, value: object, item_index: int) -> Iterable[object]:
        """Return the objects that contain the labels of an item.

        Later objects take precedence.
        """
        items = self.list_body_items(value)
        return (items[item_index],) if item_index < len(items) else ()

    def describe_parsing(self, mapping: FieldMapping) -> str:
        """Return a phrase that describes how a payload was parsed.

        Web pages show the phrase after the name of the integration.
        """
        del mapping
        return f"in the format of {self.label}"

    def list_grouping_rules(
        self, part: Mapping[str, object], item: IncomingAlert, mapping: FieldMapping
    ) -> Iterator[GroupingRule]:
        """Yield the rules that may have computed the fingerprint of an alert."""
        del part, mapping
        sentence = f"Reports are grouped into one alert by {item.fingerprint_source}."
        yield GroupingRule(item.fingerprint, sentence, {})

    def describe_misdirected_deliveries(self) -> str:
        """Return advice about deliveries that have the format of another integration type."""
        return "See the warnings of these deliveries"
