"""What every part of the authorization server is handed."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from domain.keyring import Keyring


@dataclass(frozen=True, kw_only=True)
class OAuthPolicy:
    """The instance's choices; lifetimes count from the moment of issue."""

    #: The base URL without a trailing slash: `iss` of RFC 9207 and RFC 8414.
    issuer: str
    access_token_lifetime: timedelta
    #: At most 10 minutes (RFC 6749 section 4.1.2).
    code_lifetime: timedelta
    require_https_redirect_uris: bool


@dataclass(frozen=True, kw_only=True)
class OAuthContext:
    """Collaborators of one request."""

    session: Session
    keyring: Keyring
    now: datetime
    policy: OAuthPolicy
