"""Storage for return URLs that are too long to be part of another URL.

The path with its query is stored in the database, and the browser carries a handle. Anyone can send
a browser to a long URL, so each network can store only a limited number of URLs.
"""

from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.attempt_counters import AttemptLimit, consume_attempt
from domain.core.ip_addresses import get_client_network
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_hex
from models import ReturnUrl

#: Lifetime of a stored URL: enough for a sign-in with a second factor, a new password or an
#: identity provider.
RETURN_URL_LIFETIME = timedelta(hours=1)
#: Maximum length of a stored path with its query, in characters.
MAX_RETURN_URL_LENGTH = 32_768
_MAX_STORED_URLS, _LIMIT_WINDOW = 300, timedelta(minutes=10)


def store_return_url(
    path: str, *, address: str | None, session: Session, keyring: Keyring, now: datetime
) -> str:
    """Store a path and return its handle.

    Raise TooManyAttemptsError if the network of the IP address has stored too many URLs.
    """
    subject = f"kept pages, address {get_client_network(address or '')}"
    limit = AttemptLimit(subject=subject, attempts=_MAX_STORED_URLS, window=_LIMIT_WINDOW)
    consume_attempt(limit, session=session, keyring=keyring, now=now)
    handle = generate_random_hex(16)
    session.add(
        ReturnUrl(
            digest=keyring.compute_digest(handle), path=path, expires_at=now + RETURN_URL_LIFETIME
        )
    )
    return handle


def find_return_url(
    handle: str, *, session: Session, keyring: Keyring, now: datetime
) -> str | None:
    """Return the stored path for a handle, or None if the handle is unknown or has expired."""
    return session.scalar(
        select(ReturnUrl.path).where(
            ReturnUrl.digest.in_(keyring.compute_digests(handle)), ReturnUrl.expires_at > now
        )
    )
