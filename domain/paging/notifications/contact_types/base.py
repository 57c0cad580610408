"""Base class for contact types, and the interfaces that contact types use."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, NamedTuple, Protocol

from domain.delivery.mail.outbox import ClaimedEmail
from domain.paging.notifications.message_content import MessageContent
from domain.paging.notifications.push_subscriptions import PushSubscription


@dataclass(frozen=True, kw_only=True)
class ContactAddress:
    """A valid address, and the part of the address that may be shown."""

    type: "ContactType"
    clear: str = field(repr=False)
    shown: str
    #: Key of the service. Contacts with the same lane share a service.
    lane: str


@dataclass(frozen=True, kw_only=True)
class ContactMessage:
    """A message to send to a contact now."""

    type: "ContactType"
    address: str = field(repr=False)
    content: MessageContent = field(repr=False)
    message_ids: tuple[int, ...]
    #: ID of the attempt. It stays the same until an attempt is known to have failed.
    attempt_id: int
    #: True if an earlier attempt may have succeeded.
    is_repeat: bool = False
    tries: int
    created_at: datetime


class SendProblem(NamedTuple):
    """The reason why a message was not sent."""

    #: Reason without addresses or secrets.
    reason: str
    #: Response of the service, for users who may see the contact.
    words: str = ""
    #: True if a retry cannot succeed.
    is_final: bool = False
    #: True if email cannot be sent to any address.
    is_of_all_mail: bool = False
    #: True if the message may have arrived although no response was received.
    may_have_arrived: bool = False
    #: True if the address no longer exists. The contact then receives no more messages.
    has_ended: bool = False
    #: Number of seconds after which the service accepts another attempt. None if the service did
    #: not state a number.
    retry_after: int | None = None


class ParsedServiceUrl(NamedTuple):
    """The service of a parsed URL, and the URL without its secrets."""

    #: Name of the service, such as Slack.
    name: str
    #: URL without its secrets.
    shown: str
    #: Key of the service. URLs with the same lane share a service.
    lane: str


class UrlParser(Protocol):
    """Function that parses URLs without network access."""

    def __call__(self, url: str, /) -> ParsedServiceUrl:
        """Parse a URL, and return its service and the URL without its secrets.

        Raise InvalidError for the `address` field if the URL is invalid.
        """
        ...


class ContactTransports(Protocol):
    """The functions with which a worker sends messages. Each attempt ends before its deadline."""

    def send_mail(self, message: ClaimedEmail) -> SendProblem | None:
        """Send an email.

        Return the problem, or None if the email was sent.
        """
        ...

    def send_via_apprise(self, url: str, content: MessageContent) -> SendProblem | None:
        """Send a message to an Apprise URL.

        Return the problem, or None if the message was sent.
        """
        ...

    def send_push(
        self, subscription: PushSubscription, content: MessageContent, attempt_id: int
    ) -> SendProblem | None:
        """Send a notification to a browser.

        Return the problem, or None if the notification was sent.
        """
        ...

    def prepare_apprise(self) -> None:
        """Start the Apprise process in advance, since starting the process takes a moment."""
        ...


class ContactType(ABC):
    """Base class for contact types, which validate addresses and send messages."""

    #: Name in the database, the API and commands; at most 16 characters.
    name: ClassVar[str]
    #: Singular and plural labels on web pages.
    label: ClassVar[str]
    plural: ClassVar[str]
    #: Noun phrase for addresses that follows the word “Enter”, and an example of an address.
    address_words: ClassVar[str]
    example: ClassVar[str]
    #: Label of the field for an address, and a regular expression that rejects obvious mistakes.
    address_label: ClassVar[str] = "Address"
    address_pattern: ClassVar[str] = ".+"
    #: Sentence about the services that receive messages through this type.
    help: ClassVar[str]
    #: Name for contacts of this type in texts about pages. None if texts use the contact's label.
    generic_name: ClassVar[str | None] = None
    #: True if messages are sent through the mail server of the instance. Such messages wait until a
    #: mail server is configured. Failures may be caused by the mail server rather than the contact.
    #: The server's response may be shown to the user who added the address.
    uses_mail_server: ClassVar[bool] = False
    #: True if users enter the address. False for browsers, which register themselves.
    is_entered: ClassVar[bool] = True

    @abstractmethod
    def validate_address(self, text: str, *, read_url: UrlParser) -> ContactAddress:
        """Validate and return an address, without network access.

        Raise InvalidError if the text is not an address of this type.
        """

    def prepare_sending(self, transports: ContactTransports) -> None:  # noqa: B027 - optional
        """Start slow preparations for messages that will be sent soon.

        The default implementation does nothing.
        """

    @abstractmethod
    def send_message(
        self, delivery: ContactMessage, transports: ContactTransports
    ) -> SendProblem | None:
        """Send a message to a contact.

        Return the problem, or None if the message was sent.
        """
