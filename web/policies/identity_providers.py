"""Access to identity providers for actions."""

from domain.accounts.identity_providers.relying_party import ProviderAccess
from web.outgoing.client import OutgoingClient
from web.services import get_services, get_settings


def build_upstream() -> ProviderAccess:
    """Return the object that reads the documents of identity providers."""
    fetch = OutgoingClient.from_settings(get_settings()).send_request
    return ProviderAccess(fetch=fetch, documents=get_services().provider_documents)
