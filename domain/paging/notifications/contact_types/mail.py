"""Contacts that are email addresses."""

from domain.accounts.users import normalize_email
from domain.core.errors import InvalidError
from domain.delivery.mail.outbox import ClaimedEmail
from domain.paging.notifications.contact_types.base import (
    ContactAddress,
    ContactMessage,
    ContactTransports,
    ContactType,
    SendProblem,
    UrlParser,
)

EMAIL_LANE = "email"


class EmailContactType(ContactType):
    """Contact type for email that is sent through the mail server of the instance."""

    name = "email"
    label = plural = "Email"
    address_words = "an email address"
    example = "alice@example.org"
    address_label = "Email address"
    address_pattern = r"[^\s@]+@[^\s@]+"
    help = "Pages are sent to this email address, through the mail server of this service."
    generic_name = "email"
    uses_mail_server = True

    def validate_address(self, text: str, *, read_url: UrlParser) -> ContactAddress:
        """Validate and return an email address.

        Raise InvalidError if the text is not an email address.
        """
        del read_url
        return parse_email_address(text)

    def send_message(
        self, delivery: ContactMessage, transports: ContactTransports
    ) -> SendProblem | None:
        """Send an email.

        Return the problem, or None if the email was sent.
        """
        return transports.send_mail(
            ClaimedEmail(
                id=delivery.attempt_id,
                # The key is the same for each attempt, so that email clients recognize duplicates.
                key=f"page {delivery.attempt_id}",
                recipient=delivery.address,
                subject=delivery.content.subject,
                text=delivery.content.text,
                created_at=delivery.created_at,
                tries=delivery.tries,
                buttons=delivery.content.buttons,
                thread=delivery.content.thread,
            )
        )


EMAIL = EmailContactType()


def parse_email_address(text: str) -> ContactAddress:
    """Validate and return an email address.

    Raise InvalidError if the text is not an email address.
    """
    try:
        address = normalize_email(text)
    except InvalidError as error:
        raise InvalidError(str(error), field="address") from error
    return ContactAddress(type=EMAIL, clear=address, shown=address, lane=EMAIL_LANE)
