"""Contacts that are email addresses."""

from domain.accounts.users import checked_email
from domain.core.errors import InvalidError
from domain.delivery.mail.outbox import Message
from domain.paging.notifications.contact_types.base import (
    Address,
    ContactType,
    Delivery,
    Means,
    Problem,
    UrlReader,
)

EMAIL_LANE = "email"


class Email(ContactType):
    """Email through the mail server of the instance."""

    name = "email"
    label = plural = "Email"
    address_words = "an email address"
    example = "alice@example.org"
    help = "An email to this address."
    spoken = "email"
    uses_mail_server = True

    def may_be(self, text: str) -> bool:
        """Return whether a text is not a URL."""
        return "://" not in text

    def check(self, text: str, *, read_url: UrlReader) -> Address:
        """Return a checked email address.

        Raise InvalidError if the text is not an email address.
        """
        del read_url
        return email_address(text)

    def send(self, delivery: Delivery, means: Means) -> Problem | None:
        """Send an email."""
        return means.send_mail(
            Message(
                id=delivery.attempt_id,
                # The key is the same for each attempt, so that clients recognize duplicates.
                key=f"page {delivery.attempt_id}",
                recipient=delivery.address,
                subject=delivery.content.subject,
                text=delivery.content.text,
                created_at=delivery.created_at,
                tries=delivery.tries,
            )
        )


EMAIL = Email()


def email_address(text: str) -> Address:
    """Return a checked email address.

    Raise InvalidError if the text is not an email address.
    """
    try:
        address = checked_email(text)
    except InvalidError as error:
        raise InvalidError(str(error), field="address") from error
    return Address(type=EMAIL, clear=address, shown=address, lane=EMAIL_LANE)
