"""Users who return from an identity provider."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class ProviderUser:
    """A user whose identity the provider confirmed."""

    subject: str
    name: str
    username: str
    email: str
    is_email_verified: bool
    #: Groups at the provider. None if the provider did not return them.
    groups: frozenset[str] | None
    #: Authentication methods at the provider (`amr`).
    methods: frozenset[str] = frozenset()
    #: Time of the sign-in at the provider. None if the provider does not return it.
    authenticated_at: datetime | None = None
