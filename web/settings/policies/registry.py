"""Policy for the container registry and its tokens, derived from the settings."""

from datetime import timedelta
from urllib.parse import urlsplit

from domain.registry.client import RegistryPolicy
from domain.registry.tokens import TokenPolicy
from web.settings.environment import Settings


def build_registry_policy(current: Settings) -> RegistryPolicy:
    """Return the policy with the registry's location and the properties of its tokens."""
    return RegistryPolicy(
        host=urlsplit(current.registry_url).netloc or None,
        api_url=current.registry_api_url or current.registry_url,
        tokens=TokenPolicy(
            issuer=current.base_url,
            lifetime=timedelta(seconds=current.registry_token_lifetime_seconds),
        ),
        trusted_ca_file=current.trusted_ca_file,
    )
