"""The ready configuration of a registry, with the secret only for those who may see it."""

from domain.registry.configuration import RegistryConfiguration
from web.access.marks import get_current_user
from web.registry.notification_secrets import notification_secrets
from web.services import settings


def whole_configuration() -> RegistryConfiguration:
    """Return the configuration with the secret, for administrators."""
    return RegistryConfiguration(
        base_url=settings().base_url, notification_secret=notification_secrets()[0]
    )


def shown_configuration() -> RegistryConfiguration:
    """Return the configuration for a page of a project.

    The secret is the instance's: with it somebody could invent images of other projects.
    """
    if get_current_user().is_admin:
        return whole_configuration()
    return RegistryConfiguration(base_url=settings().base_url)
