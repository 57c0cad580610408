"""Builder of messages about email addresses, for actions."""

from domain.accounts.email_addresses import AccountMessageBuilder
from web.services import get_services, get_settings


def get_account_message_builder() -> AccountMessageBuilder:
    """Return the builder of messages about email addresses."""
    current = get_settings()
    return AccountMessageBuilder(
        instance_name=current.instance_name,
        base_url=current.base_url,
        keyring=get_services().keyring,
        has_mail_server=bool(current.mail_url),
    )
