"""People whom identity providers send."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """Whom a provider vouches for."""

    subject: str
    name: str
    username: str
    email: str
    is_email_verified: bool
    #: None if the provider did not say.
    groups: frozenset[str] | None
    #: How they signed in there (`amr`).
    methods: frozenset[str] = frozenset()
    #: When they signed in there; None if the provider does not say.
    authenticated_at: datetime | None = None
