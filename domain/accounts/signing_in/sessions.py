"""Browsers in which somebody is signed in.

The cookie holds a random token; the row holds its digest. Signing out deletes the row, so a
copied cookie is worthless afterwards.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from domain.accounts.factors.passkey_ceremonies import Assertion
from domain.accounts.users import ACTIVE, HUMAN
from domain.errors import NotFoundError
from domain.keyring import Keyring, Kind
from models import SignIn, User


@dataclass(frozen=True, kw_only=True)
class Browser:
    """Where a request came from, as far as we can know."""

    address: str | None
    user_agent: str | None


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Who somebody has shown to be, and how: names of RFC 8176, OpenID Connect's amr."""

    user: User
    methods: tuple[str, ...]


BY_PASSWORD = ("pwd",)
BY_PASSWORD_AND_CODE = ("pwd", "otp", "mfa")


def by_password_and_passkey(proof: Assertion) -> tuple[str, ...]:
    """Return how somebody is known who had the password and then a passkey."""
    return ("pwd", _key(proof), "mfa")


def by_passkey(proof: Assertion) -> tuple[str, ...]:
    """Return how somebody is known whose authenticator made sure who used the passkey."""
    return (_key(proof), "user", "mfa")


def _key(proof: Assertion) -> str:
    return "hwk" if proof.is_bound_to_device else "swk"


def open_sign_in(
    proof: Proof,
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
            user_id=proof.user.id,
            created_at=now,
            expires_at=now + lifetime,
            address=browser.address,
            user_agent=(browser.user_agent or "")[:255] or None,
            methods=" ".join(proof.methods),
        )
    )
    proof.user.last_sign_in_at = now
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
        .where(
            SignIn.token_digest.in_(digests),
            SignIn.expires_at > now,
            User.state == ACTIVE,
            User.kind == HUMAN,
        )
    ).first()
    return (row[0], row[1]) if row else None


def close_sign_in(sign_in_id: int, *, session: Session) -> None:
    """Sign this browser out."""
    session.execute(delete(SignIn).where(SignIn.id == sign_in_id))


def close_other_sign_ins(user_id: int, *, but: int, session: Session) -> int:
    """Sign the user out everywhere except in one browser, and return of how many."""
    others = SignIn.user_id == user_id, SignIn.id != but
    return len(session.scalars(delete(SignIn).where(*others).returning(SignIn.id)).all())


@dataclass(frozen=True, kw_only=True)
class OpenSignIn:
    """A browser in which somebody is signed in, as they see it."""

    id: int
    created_at: datetime
    address: str | None
    #: The browser's own words about itself.
    user_agent: str | None
    #: Whether it is the one that asks.
    is_this: bool


@dataclass(frozen=True, kw_only=True)
class OpenSignIns:
    """The latest of somebody's sign-ins, and how many there are in all."""

    items: tuple[OpenSignIn, ...]
    total: int


#: A script that signs in anew each time leaves thousands; they are closed together.
_MOST_SHOWN = 50


def list_sign_ins(user_id: int, *, asked_from: int, session: Session, now: datetime) -> OpenSignIns:
    """Return where a user is signed in, the latest first; `asked_from` is the sign-in that asks."""
    is_open = SignIn.user_id == user_id, SignIn.expires_at > now
    statement = select(SignIn).where(*is_open).order_by(SignIn.id.desc()).limit(_MOST_SHOWN)
    items = tuple(
        OpenSignIn(
            id=row.id,
            created_at=row.created_at,
            address=row.address,
            user_agent=row.user_agent,
            is_this=row.id == asked_from,
        )
        for row in session.scalars(statement)
    )
    total = session.scalar(select(func.count(SignIn.id)).where(*is_open)) or 0
    return OpenSignIns(items=items, total=total)


def close_sign_in_of(user_id: int, sign_in_id: int, *, session: Session) -> Browser:
    """Sign one of a user's browsers out and return which; raise NotFoundError if there is none."""
    mine = SignIn.user_id == user_id, SignIn.id == sign_in_id
    closed = session.execute(
        delete(SignIn).where(*mine).returning(SignIn.address, SignIn.user_agent)
    ).first()
    if closed is None:
        message = "That browser is signed out already."
        raise NotFoundError(message)
    return Browser(address=closed.address, user_agent=closed.user_agent)


def close_all_sign_ins(user_id: int, *, session: Session) -> None:
    """Sign the user out everywhere."""
    session.execute(delete(SignIn).where(SignIn.user_id == user_id))
