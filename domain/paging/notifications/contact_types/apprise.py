"""Contacts that are URLs of the services that Apprise knows."""

from domain.paging.notifications.contact_types.base import (
    Address,
    ContactType,
    Delivery,
    Means,
    Problem,
    UrlReader,
)


class Apprise(ContactType):
    """Any of the services of Apprise."""

    name = "apprise"
    label, plural = "Other service", "Other services"
    address_words = "an Apprise URL"
    example = "ntfys://topic"
    help = (
        "Slack, Teams, Telegram, ntfy, Pushover, Matrix, text messages and others, "
        "as an Apprise URL."
    )

    def check(self, text: str, *, read_url: UrlReader) -> Address:
        """Return a URL that Apprise can read, or raise InvalidError."""
        found = read_url(text)
        return Address(type=self, clear=text, shown=found.shown, lane=found.lane)

    def prepare(self, means: Means) -> None:
        """Start the process that Apprise runs in."""
        means.prepare_apprise()

    def send(self, delivery: Delivery, means: Means) -> Problem | None:
        """Send a message to a URL."""
        return means.send_by_apprise(delivery.address, delivery.content)


APPRISE = Apprise()
