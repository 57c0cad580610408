"""The secrets that notifications of the registry carry."""

import hmac

from flask import request

from domain.keyring import CredentialType
from domain.registry.notifications import NotificationSecretError
from web.services import services, settings

_DERIVED_FROM = "the container registry of this installation"


def notification_secrets() -> tuple[str, ...]:
    """Return the accepted secrets; the first one is for the registry's configuration.

    They are those of REGISTRY_NOTIFICATION_SECRETS, else one made from each secret key.
    """
    return settings().registry_notification_secrets or services().keyring.derived_credentials(
        _DERIVED_FROM, CredentialType.REGISTRY_NOTIFICATIONS
    )


def check_notification_secret() -> None:
    """Raise NotificationSecretError unless the Authorization header has one of the secrets.

    With `Bearer` before it or without: the registry sends whatever its configuration says.
    """
    header = request.headers.get("Authorization", "").strip()
    scheme, _, rest = header.partition(" ")
    given = (rest.strip() if scheme.lower() == "bearer" else header).encode(errors="replace")
    # All are compared, so that the time does not tell which of them it was.
    matching = [hmac.compare_digest(given, each.encode()) for each in notification_secrets()]
    if not any(matching):
        message = (
            "The Authorization header needs the secret of the registry's configuration, which "
            "administrators find under Container registry."
        )
        raise NotificationSecretError(message)
