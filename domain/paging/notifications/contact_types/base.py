"""What a type of contact declares, and what it gets to do its work with."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, NamedTuple, Protocol

from domain.delivery.mail.outbox import Message
from domain.paging.notifications.messages import Content


@dataclass(frozen=True, kw_only=True)
class Address:
    """A checked address, and what may be shown of it."""

    type: "ContactType"
    clear: str = field(repr=False)
    shown: str
    #: Contacts with the same one share a service.
    lane: str


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What is sent to a contact now."""

    type: "ContactType"
    address: str = field(repr=False)
    content: Content = field(repr=False)
    message_ids: tuple[int, ...]
    #: Identifies what is sent: the same in each attempt until one is known to have failed.
    attempt_id: int
    #: Whether an earlier attempt may have succeeded.
    is_repeat: bool = False
    tries: int
    created_at: datetime


class Problem(NamedTuple):
    """Why a message was not sent."""

    #: Contains no address and no secret.
    reason: str
    #: The service's own words, for those who may see the contact.
    words: str = ""
    #: Whether a retry is useless.
    is_final: bool = False
    #: Whether no e-mail at all leaves, to whatever address.
    is_of_all_mail: bool = False
    #: Whether the message may have arrived all the same, since no answer came.
    may_have_arrived: bool = False


class UrlService(NamedTuple):
    """What is known of a URL that Apprise can read."""

    #: The name of the service, such as Slack.
    name: str
    #: The URL without its secrets.
    shown: str
    #: URLs with the same one share a service.
    lane: str


class UrlReader(Protocol):
    """Reads URLs without the network."""

    def __call__(self, url: str, /) -> UrlService:
        """Return what a URL leads to, or raise InvalidError for the field `address`."""
        ...


class Means(Protocol):
    """What a worker sends messages with; each attempt ends within its deadline."""

    def send_mail(self, message: Message) -> Problem | None:
        """Send an e-mail; return why it was not sent, or None."""
        ...

    def send_by_apprise(self, url: str, content: Content) -> Problem | None:
        """Send a message to an Apprise URL; return why it was not sent, or None."""
        ...

    def prepare_apprise(self) -> None:
        """Start what Apprise runs in, which takes a moment."""
        ...


class ContactType(ABC):
    """A way to reach people; `domain/paging/notifications/contact_types/registry.py` lists them."""

    #: Stored, and shown by the API and commands; at most 16 characters.
    name: ClassVar[str]
    #: Of one contact and of many, on pages.
    label: ClassVar[str]
    plural: ClassVar[str]
    #: What its addresses are, in words that follow “Enter”, and an example.
    address_words: ClassVar[str]
    example: ClassVar[str]
    #: Which services it reaches, as a sentence.
    help: ClassVar[str]
    #: What texts about pages call any contact of it; None: each by its label.
    spoken: ClassVar[str | None] = None
    #: Whether messages go through the mail server of the instance. If so, they wait until there is
    #: one, a failure may be the server's and not the contact's, and what the server answers may be
    #: shown to whoever entered the address.
    uses_mail_server: ClassVar[bool] = False

    def may_be(self, text: str) -> bool:
        """Return whether a text can be an address at first sight."""
        del text
        return True

    @abstractmethod
    def check(self, text: str, *, read_url: UrlReader) -> Address:
        """Return an address after a check without the network, or raise InvalidError."""

    def prepare(self, means: Means) -> None:  # noqa: B027 - most types need nothing
        """Start what takes a moment, for messages that follow soon."""

    @abstractmethod
    def send(self, delivery: Delivery, means: Means) -> Problem | None:
        """Send a message; return why it was not sent, or None."""
