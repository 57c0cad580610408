"""The policy of the container registry."""

from datetime import timedelta
from urllib.parse import urlsplit

from domain.registry.client import RegistryPolicy
from domain.registry.tokens import TokenPolicy
from web.settings.reader import Settings


def registry_policy(current: Settings) -> RegistryPolicy:
    """Return where the container registry is, and what its tokens have in common."""
    return RegistryPolicy(
        host=urlsplit(current.registry_url).netloc or None,
        api_url=current.registry_api_url or current.registry_url,
        tokens=TokenPolicy(
            issuer=current.base_url,
            lifetime=timedelta(seconds=current.registry_token_lifetime_seconds),
        ),
        trusted_ca_file=current.trusted_ca_file,
    )
