"""Codes of an authenticator app (RFC 6238): six digits, new every half minute, each good once."""

import string
import unicodedata
from datetime import datetime

from pyotp import TOTP
from pyotp.exceptions import OTPVerificationError
from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from domain.database.upsert import insert_into
from domain.errors import ConflictError, InvalidError
from domain.keyring import Keyring
from domain.randomness import random_letters
from models import TotpDevice

#: The alphabet of Base32 (RFC 4648 section 6), in which apps take the key.
_BASE32 = string.ascii_uppercase + "234567"
#: 160 bits, as RFC 4226 section 4 recommends.
_SEED_LETTERS = 32
_DIGITS = 6
#: How many half minutes the clock of the app may be off, either way (RFC 6238 section 5.2).
_DRIFT = 1


def new_seed() -> str:
    """Return a new key for an app, in Base32."""
    return random_letters(_BASE32, _SEED_LETTERS)


def address_for_apps(seed: str, *, username: str, instance: str) -> str:
    """Return the address that an app reads from a QR code."""
    return TOTP(seed).provisioning_uri(name=username, issuer_name=instance)


def read_code(typed: str) -> str | None:
    """Return the code that somebody typed, however they grouped it; None if it cannot be one."""
    bare = "".join(unicodedata.normalize("NFKC", typed).replace("-", "").split())
    is_code = len(bare) == _DIGITS and bare.isascii() and bare.isdigit()
    return bare if is_code else None


def set_up_app(
    user_id: int, seed: str, code: str, *, session: Session, keyring: Keyring, now: datetime
) -> None:
    """Keep the key of an app, once a code has shown that the app has it.

    Raises InvalidError for a wrong code, and ConflictError if there is an app already.
    """
    step = _step_of(code, seed, now)
    if step is None:
        message = "This is not the code of this key. Compare the clock of your device, too."
        raise InvalidError(message, field="code")
    insert = insert_into(TotpDevice, session=session).values(
        user_id=user_id,
        seed_ciphertext=keyring.encrypt(seed),
        created_at=now,
        confirmed_at=now,
        last_used_step=step,
    )
    made = session.scalar(insert.on_conflict_do_nothing().returning(TotpDevice.id))
    if made is None:
        message = "You have an authenticator app already. Remove it first."
        raise ConflictError(message, field="code")


def use_code(user_id: int, code: str, *, session: Session, keyring: Keyring, now: datetime) -> bool:
    """Tell whether this is a code of the user's app, and make it worthless.

    Of several who send one code at once, one is told yes: the same UPDATE looks and claims.
    """
    app = session.scalar(
        select(TotpDevice).where(
            TotpDevice.user_id == user_id, TotpDevice.confirmed_at.is_not(None)
        )
    )
    step = _step_of(code, keyring.decrypt(app.seed_ciphertext), now) if app else None
    if app is None or step is None:
        return False
    is_newer = or_(TotpDevice.last_used_step.is_(None), TotpDevice.last_used_step < step)
    claim = (
        update(TotpDevice)
        .where(TotpDevice.id == app.id, is_newer)
        .values(last_used_step=step)
        .returning(TotpDevice.id)
    )
    return session.scalar(claim) is not None


def remove_app(user_id: int, *, session: Session) -> bool:
    """Forget the user's authenticator app; tell whether there was one."""
    gone = delete(TotpDevice).where(TotpDevice.user_id == user_id).returning(TotpDevice.id)
    return session.scalar(gone) is not None


def _step_of(code: str, seed: str, now: datetime) -> int | None:
    """Return the half minute that a code belongs to, if it is one around now."""
    try:
        return TOTP(seed).verify_and_get_timecode(code, for_time=now, valid_window=_DRIFT)
    except OTPVerificationError:
        return None
