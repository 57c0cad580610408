"""Second factors of users: authenticator apps and passkeys, with recovery codes."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BindParameter, ColumnElement, bindparam, delete, func, or_, select
from sqlalchemy.orm import Session

from domain.core.types.base import get_column_values
from models import Passkey, RecoveryCode, TotpDevice


@dataclass(frozen=True, kw_only=True)
class PasskeyView:
    """A passkey in the list of its user's second factors."""

    id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


def build_passkey_view(passkey: Passkey) -> PasskeyView:
    """Convert a passkey row to a `PasskeyView`."""
    return PasskeyView(**get_column_values(passkey, PasskeyView))


@dataclass(frozen=True, kw_only=True)
class SecondFactors:
    """The second factors of a user, and the number of unused recovery codes."""

    #: Time at which the authenticator app was set up; None if the user has no app.
    app_since: datetime | None
    passkeys: tuple[PasskeyView, ...]
    recovery_codes_left: int

    @property
    def has_app(self) -> bool:
        """True if the user has an authenticator app."""
        return self.app_since is not None

    @property
    def has_any_factor(self) -> bool:
        """True if the user has a second factor, and therefore needs it to sign in."""
        return self.has_app or bool(self.passkeys)


def build_second_factor_condition(user_id: int | BindParameter[int]) -> ColumnElement[bool]:
    """Return an SQL condition that is true if a user has a second factor."""
    has_app = (
        select(TotpDevice.id)
        .where(TotpDevice.user_id == user_id, TotpDevice.confirmed_at.is_not(None))
        .exists()
    )
    has_passkey = select(Passkey.id).where(Passkey.user_id == user_id).exists()
    return or_(has_app, has_passkey)


#: Query that pages run. It is built only once, since building it takes longer than running it.
_HAS_FACTOR = select(build_second_factor_condition(bindparam("user_id")))


def has_second_factor(user_id: int, *, session: Session) -> bool:
    """Return whether an account has a second factor, and therefore needs it to sign in."""
    return bool(session.scalar(_HAS_FACTOR, {"user_id": user_id}))


def get_second_factors(user_id: int, *, session: Session) -> SecondFactors:
    """Return a user's second factors and the number of unused recovery codes."""
    app_since = select(TotpDevice.confirmed_at).where(TotpDevice.user_id == user_id)
    passkeys = select(Passkey).where(Passkey.user_id == user_id).order_by(Passkey.id)
    codes_left = select(func.count(RecoveryCode.id)).where(
        RecoveryCode.user_id == user_id, RecoveryCode.used_at.is_(None)
    )
    return SecondFactors(
        app_since=session.scalar(app_since),
        passkeys=tuple(build_passkey_view(each) for each in session.scalars(passkeys)),
        recovery_codes_left=session.scalar(codes_left) or 0,
    )


def delete_second_factors(user_id: int, *, session: Session) -> bool:
    """Remove all second factors of a user, and return whether the user had any.

    This is for users who have lost their authenticator app, passkeys and recovery codes.
    """
    had_any = has_second_factor(user_id, session=session)
    for table in (TotpDevice, Passkey, RecoveryCode):
        session.execute(delete(table).where(table.user_id == user_id))
    return had_any


def delete_orphaned_recovery_codes(user_id: int, *, session: Session) -> None:
    """Delete the recovery codes of a user who no longer has any other second factor."""
    if not has_second_factor(user_id, session=session):
        session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
