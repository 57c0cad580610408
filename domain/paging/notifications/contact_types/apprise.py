"""Contacts whose address is the URL of a service that Apprise supports."""

from domain.paging.notifications.contact_types.base import (
    ContactAddress,
    ContactMessage,
    ContactTransports,
    ContactType,
    SendProblem,
    UrlParser,
)


class AppriseContactType(ContactType):
    """Contact type for services that Apprise supports."""

    name = "apprise"
    label, plural = "Other service", "Other services"
    address_words = "an Apprise URL"
    example = "ntfys://topic"
    address_pattern = r"[A-Za-z0-9+.-]+://\S.*"
    help = "Find one of more than 150 other services, such as Matrix, and build its Apprise URL."

    def validate_address(self, text: str, *, read_url: UrlParser) -> ContactAddress:
        """Validate a URL, and return it as a contact address.

        Raise InvalidError if Apprise does not support the URL.
        """
        found = read_url(text)
        return ContactAddress(type=self, clear=text, shown=found.shown, lane=found.lane)

    def prepare_sending(self, transports: ContactTransports) -> None:
        """Start the process in which Apprise runs."""
        transports.prepare_apprise()

    def send_message(
        self, delivery: ContactMessage, transports: ContactTransports
    ) -> SendProblem | None:
        """Send a message to an Apprise URL.

        Return the problem, or None if the message was sent.
        """
        return transports.send_via_apprise(delivery.address, delivery.content)


APPRISE = AppriseContactType()
