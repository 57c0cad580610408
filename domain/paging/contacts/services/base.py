"""Messaging services, and the conversion between the values of their fields and Apprise URLs."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from domain.core.errors import InvalidError
from domain.core.labeled_enums import LabeledEnum
from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactType


class ServiceKind(LabeledEnum):
    """The kind of a messaging service. Web pages group services by kind."""

    PUSH = "push", "Push notifications"
    TEXT = "text", "Text messages"
    CHAT = "chat", "Chat"
    OTHER = "other", "Other"


@dataclass(frozen=True, kw_only=True)
class ServiceField:
    """A form field in which users enter part of a contact's address."""

    name: str
    label: str
    #: Noun phrase that error messages use for the value, such as `a topic`.
    noun: str
    #: Example that shows the format of a value.
    example: str
    #: Regular expression for the complete value. Its named groups are parts of the service's URL.
    pattern: str
    #: Template of the value, with its parts in braces. Empty if the value is the only part.
    shape: str = ""
    help: str = ""
    #: Input mode of the field on phones.
    kind: Literal["text", "url", "tel"] = "text"
    #: True if the stored value is never shown.
    is_secret: bool = False
    is_optional: bool = False
    default: str = ""

    def parse_value(self, text: str) -> Mapping[str, str]:
        """Parse the value of the field, and return its parts by name.

        Raise InvalidError for this field if the value is missing or malformed.
        """
        if not text and self.is_optional:
            return {}
        if not text:
            raise InvalidError(f"Enter {self.noun}.", field=self.name)
        value = re.sub(r"[\s()./-]", "", text) if self.kind == "tel" else text
        pattern = self.pattern if "(?P<" in self.pattern else f"(?P<{self.name}>{self.pattern})"
        found = re.fullmatch(pattern, value)
        if found is None:
            end = "" if self.example.endswith("…") else "."
            message = f"This is not {self.noun}. Expected format: {self.example}{end}"
            raise InvalidError(message, field=self.name)
        return found.groupdict("")


@dataclass(frozen=True, kw_only=True)
class MessagingService:
    """A messaging service, such as the services in `domain/paging/contacts/services/services.toml`.

    If the complete URL is invalid, forms show the error next to the first field.
    """

    #: Name in page URLs.
    slug: str
    name: str
    initials: str
    kind: ServiceKind
    #: Sentence that describes the requirements of the service.
    needs: str
    #: URL and name of the page where the provider explains the service.
    link: tuple[str, str] | None = None
    fields: tuple[ServiceField, ...]
    #: Apprise URL, with parts of the fields in braces and optional sections in brackets.
    url: str
    type: ContactType = APPRISE
    #: Schemes of Apprise URLs for this service.
    schemes: Collection[str] = ()
    #: Regular expression for another form of the URL, and the replacement in the form of `url`.
    alternative: tuple[str, str] | None = None
    #: True if query parameters need a hyphen as a prefix, without which Apprise does not send them.
    marks_query: bool = False

    def build_url(self, values: Mapping[str, str]) -> str:
        """Return the address that is built from the values, usually an Apprise URL.

        Raise InvalidError for the first field with a missing or malformed value.
        """
        parts: dict[str, str] = {}
        for each in self.fields:
            parts.update(each.parse_value(values.get(each.name, "").strip()))
        optional = re.compile(r"\[([^]]*\{(\w+)\}[^]]*)\]")
        url = optional.sub(lambda found: found[1] if parts.get(found[2]) else "", self.url)
        url = url.format_map(parts)
        return re.sub(r"([?&])(?!-)", r"\1-", url) if self.marks_query else url

    def parse_url(self, url: str) -> Mapping[str, str] | None:
        """Return the values of the fields for a URL, or None if the fields cannot represent it."""
        if self.alternative is not None:
            url = re.sub(*self.alternative, url)
        if self.marks_query and re.search("[?&](?!-)", url):
            return None  # Apprise handles this parameter itself.
        url = re.sub(r"([?&])-", r"\1", url) if self.marks_query else url.removesuffix("/")
        found = self._url_pattern.fullmatch(url)
        if found is None:
            return None
        parts = found.groupdict("")
        shapes = {each.name: each.shape or f"{{{each.name}}}" for each in self.fields}
        values = {name: shape.format_map(parts) for name, shape in shapes.items()}
        try:
            self.build_url(values)
        except InvalidError:
            return None
        return values

    @cached_property
    def _url_pattern(self) -> re.Pattern[str]:
        text = re.escape(self.url).replace(r"\[", "(?:").replace(r"\]", ")?")
        # The part `tls` is the last letter of schemes such as https, or empty.
        text = re.sub(
            r"\\\{(\w+)\\\}",
            lambda found: f"(?P<{found[1]}>{'s?' if found[1] == 'tls' else '.+'})",
            text,
        )
        return re.compile(text)

    def fill_in_stored_secrets(
        self, entered: Mapping[str, str], stored: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the entered values, with the stored value of each secret that was left empty.

        Raise InvalidError for a secret that was left empty if a URL has changed, because the stored
        secret would be sent to another server.
        """
        values = dict(entered)
        urls = [each for each in self.fields if each.kind == "url" and not each.is_secret]
        is_moved = any(entered.get(each.name) != stored[each.name] for each in urls)
        for each in self.fields:
            if not each.is_secret or entered.get(each.name) or not stored[each.name]:
                continue
            if is_moved:
                message = f"Enter {each.noun} again, because the server has changed."
                raise InvalidError(message, field=each.name)
            values[each.name] = stored[each.name]
        return values
