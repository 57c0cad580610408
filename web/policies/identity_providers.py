"""Provides actions with access to identity providers."""

from domain.accounts.identity_providers.provider_client import ProviderHttpAccess
from web.outgoing.client import OutgoingClient
from web.services import get_services, get_settings


def build_provider_access() -> ProviderHttpAccess:
    """Return the object that reads the documents of identity providers."""
    fetch = OutgoingClient.from_settings(get_settings()).send_request
    return ProviderHttpAccess(fetch=fetch, documents=get_services().provider_documents)
