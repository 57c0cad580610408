"""Data for messages about email addresses."""

from domain.accounts.email_addresses import Letterhead
from web.services import services, settings


def letterhead() -> Letterhead:
    """Return the data for messages about email addresses."""
    current = settings()
    return Letterhead(
        instance_name=current.instance_name,
        base_url=current.base_url,
        keyring=services().keyring,
        has_mail_server=bool(current.mail_url),
    )
