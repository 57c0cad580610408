"""Browsers in which somebody is signed in.

The cookie holds a random token; the row holds its digest. Signing out deletes the row, so a
copied cookie is worthless afterwards.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE
from domain.keyring import Keyring, Kind
from models import SignIn, User


@dataclass(frozen=True, kw_only=True)
class Browser:
    """Where a request came from, as far as we can know."""

    address: str | None
    user_agent: str | None


def open_sign_in(
    user: User,
    browser: Browser,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
    lifetime: timedelta,
) -> str:
    """Sign the user in and return the token for the cookie."""
    credential = keyring.issue(Kind.SIGN_IN)
    session.add(
        SignIn(
            token_digest=credential.digest,
            user_id=user.id,
            created_at=now,
            expires_at=now + lifetime,
            address=browser.address,
            user_agent=(browser.user_agent or "")[:255] or None,
        )
    )
    user.last_sign_in_at = now
    return credential.clear


def find_sign_in(
    token: str, *, session: Session, keyring: Keyring, now: datetime
) -> tuple[SignIn, User] | None:
    """Return the live sign-in of this token and its active user, or None."""
    digests = keyring.credential_digests(token, Kind.SIGN_IN)
    if not digests:
        return None
    row = session.execute(
        select(SignIn, User)
        .join(User, User.id == SignIn.user_id)
        .where(SignIn.token_digest.in_(digests), SignIn.expires_at > now, User.state == ACTIVE)
    ).first()
    return (row[0], row[1]) if row else None


def close_sign_in(sign_in_id: int, *, session: Session) -> None:
    """Sign this browser out."""
    session.execute(delete(SignIn).where(SignIn.id == sign_in_id))


def close_other_sign_ins(user_id: int, *, but: int, session: Session) -> None:
    """Sign the user out everywhere except in one browser; after a change of password."""
    session.execute(delete(SignIn).where(SignIn.user_id == user_id, SignIn.id != but))
