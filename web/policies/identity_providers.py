"""Access of actions to identity providers."""

from domain.accounts.identity_providers.relying_party import ProviderAccess
from web.outgoing.client import OutgoingClient
from web.services import services, settings


def build_upstream() -> ProviderAccess:
    """Return the object that reads the documents of identity providers."""
    fetch = OutgoingClient.of(settings()).fetch
    return ProviderAccess(fetch=fetch, documents=services().provider_documents)
