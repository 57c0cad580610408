"""Details of users, as confirmed by identity providers."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class ProviderUser:
    """A user whose identity a provider has confirmed."""

    subject: str
    name: str
    username: str
    email: str
    is_email_verified: bool
    #: Names of the user's groups at the provider. None if the provider did not return the groups.
    groups: frozenset[str] | None
    #: Authentication methods at the provider (`amr`).
    methods: frozenset[str] = frozenset()
    #: Time of the sign-in at the provider. None if the provider did not return the time.
    authenticated_at: datetime | None = None
