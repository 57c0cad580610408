"""Sign-ins: the server-side sessions of browsers.

The cookie contains a random token, and the row contains its digest. Signing out deletes the row, so
a copied cookie is useless afterwards.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.orm import Session

from domain.accounts.factors.passkeys import PasskeyAssertion
from domain.accounts.users import IS_ACTIVE_HUMAN, UserView, build_user_view
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import CredentialType, Keyring
from domain.core.types.base import get_column_values
from models import BackchannelSession, SignIn, User


@dataclass(frozen=True, kw_only=True)
class RequestSource:
    """The IP address and the user agent of a request."""

    address: str | None
    user_agent: str | None


@dataclass(frozen=True, kw_only=True)
class Authentication:
    """An authenticated user and the methods used (RFC 8176 values, `amr` in OpenID Connect)."""

    user_id: int
    methods: tuple[str, ...]
    #: ID of the identity through which a provider authenticated the user; None for other methods.
    identity_id: int | None = None
    #: Time of an earlier sign-in at the provider. None if the user has just signed in.
    authenticated_at: datetime | None = None
    #: True if the time of the authentication is known: some providers do not return it.
    is_proof: bool = True

    def with_second_factor(self, method: str) -> Self:
        """Return a copy of the authentication with a second factor.

        The second factor proves the user's presence.
        """
        methods = (*self.methods, method, "mfa")
        return replace(self, methods=methods, authenticated_at=None, is_proof=True)


PASSWORD_METHODS = ("pwd",)
#: `amr` values for sign-ins through providers. `fed` is not a registered value, but other servers
#: also use it.
PROVIDER_METHODS = ("fed",)
PROVIDER_FACTOR_METHODS = ("fed", "mfa")


def build_passkey_methods(assertion: PasskeyAssertion) -> tuple[str, ...]:
    """Return the `amr` values for a passkey with user verification."""
    return (get_passkey_method(assertion), "user", "mfa")


def get_passkey_method(assertion: PasskeyAssertion) -> str:
    """Return the `amr` value for a passkey: "hwk" if it is bound to a device, "swk" otherwise."""
    return "hwk" if assertion.is_bound_to_device else "swk"


@dataclass(frozen=True, kw_only=True)
class ActiveSignIn:
    """A sign-in that has not expired, with its active user."""

    id: int
    created_at: datetime
    #: True if the user verifiably authenticated at `created_at`.
    is_proof: bool
    methods: tuple[str, ...]
    user: UserView


# Every request of a browser runs this query. It is built once, because building it costs as much as
# running it.
_LIVE_SIGN_IN_QUERY = (
    select(SignIn.id, SignIn.created_at, SignIn.is_proof, SignIn.methods, User)
    .join(User, User.id == SignIn.user_id)
    .where(
        SignIn.token_digest.in_(bindparam("digests", expanding=True)),
        SignIn.expires_at > bindparam("now", type_=SignIn.expires_at.type),
        IS_ACTIVE_HUMAN,
    )
)


def find_sign_in(
    token: str, *, session: Session, keyring: Keyring, now: datetime
) -> ActiveSignIn | None:
    """Return the unexpired sign-in with this token and its active user, or None."""
    digests = keyring.compute_digests(token, CredentialType.SIGN_IN)
    if not digests:
        return None
    row = session.execute(_LIVE_SIGN_IN_QUERY, {"digests": digests, "now": now}).first()
    if row is None:
        return None
    sign_in_id, created_at, is_proof, methods, user = row
    return ActiveSignIn(
        id=sign_in_id,
        created_at=created_at,
        is_proof=is_proof,
        methods=tuple(methods.split()),
        user=build_user_view(user),
    )


def renew_sign_in(token: str, *, session: Session, keyring: Keyring) -> str:
    """Replace the token of a sign-in, and return the new token.

    Copies of the cookie stop working. Raise ConflictError if the sign-in was renewed or closed in
    the meantime. Therefore, only one of several parallel changes succeeds, and later requests with
    a copied cookie fail.
    """
    credential = keyring.issue_credential(CredentialType.SIGN_IN)
    digests = keyring.compute_digests(token, CredentialType.SIGN_IN)
    renewed = session.scalars(
        build_bulk_update(SignIn)
        .where(SignIn.token_digest.in_(digests))
        .values(token_digest=credential.digest)
        .returning(SignIn.id)
    )
    if renewed.first() is None:
        message = "You were signed out in the meantime. Nothing was changed. Sign in again."
        raise ConflictError(message)
    return credential.clear


def close_sign_in(sign_in_id: int, *, session: Session) -> None:
    """Delete a sign-in, which signs out its browser."""
    session.execute(delete(SignIn).where(SignIn.id == sign_in_id))


def replace_sign_in(former_id: int, new_id: int, user_id: int, *, session: Session) -> None:
    """Replace a browser's previous sign-in with a new sign-in.

    The previous sign-in is deleted. If the user is the same, applications are not notified of a
    sign-out.
    """
    theirs = build_bulk_update(BackchannelSession).where(
        BackchannelSession.sign_in_id == former_id, BackchannelSession.user_id == user_id
    )
    session.execute(theirs.values(sign_in_id=new_id))
    close_sign_in(former_id, session=session)


def close_other_sign_ins(user_id: int, *, but: int, session: Session) -> int:
    """Delete all other sign-ins of a user, and return the number of deleted sign-ins."""
    others = SignIn.user_id == user_id, SignIn.id != but
    return len(session.scalars(delete(SignIn).where(*others).returning(SignIn.id)).all())


@dataclass(frozen=True, kw_only=True)
class ListedSignIn:
    """A sign-in that has not expired, as listed on the user's activity page."""

    id: int
    created_at: datetime
    address: str | None
    #: Value of the User-Agent header.
    user_agent: str | None
    #: True if the sign-in belongs to the current request.
    is_this: bool


@dataclass(frozen=True, kw_only=True)
class SignInList:
    """The latest sign-ins of a user, and the total number of sign-ins."""

    items: tuple[ListedSignIn, ...]
    total: int


#: Maximum number of listed sign-ins. Scripts can create thousands of sign-ins.
_MAX_LISTED_SIGN_INS = 50


def list_sign_ins(user_id: int, *, asked_from: int, session: Session, now: datetime) -> SignInList:
    """Return the unexpired sign-ins of a user, latest first.

    `asked_from` is the ID of the current sign-in.
    """
    is_open = SignIn.user_id == user_id, SignIn.expires_at > now
    statement = (
        select(SignIn).where(*is_open).order_by(SignIn.id.desc()).limit(_MAX_LISTED_SIGN_INS)
    )
    items = tuple(
        ListedSignIn(**get_column_values(row, ListedSignIn), is_this=row.id == asked_from)
        for row in session.scalars(statement)
    )
    total = session.scalar(select(func.count(SignIn.id)).where(*is_open)) or 0
    return SignInList(items=items, total=total)


def close_user_sign_in(user_id: int, sign_in_id: int, *, session: Session) -> RequestSource:
    """Delete a sign-in of a user, and return the IP address and user agent of its browser.

    Raise NotFoundError if the sign-in was already deleted.
    """
    mine = SignIn.user_id == user_id, SignIn.id == sign_in_id
    closed = session.execute(
        delete(SignIn).where(*mine).returning(SignIn.address, SignIn.user_agent)
    ).first()
    if closed is None:
        raise NotFoundError("That browser is already signed out.")
    return RequestSource(address=closed.address, user_agent=closed.user_agent)


def close_all_sign_ins(user_id: int, *, session: Session) -> None:
    """Delete all sign-ins of a user, which signs out all browsers."""
    session.execute(delete(SignIn).where(SignIn.user_id == user_id))
