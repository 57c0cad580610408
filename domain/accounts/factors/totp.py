"""Single-use TOTP codes from an authenticator app (RFC 6238): six digits, 30-second steps."""

import string
import unicodedata
from datetime import datetime

from pyotp import TOTP
from pyotp.exceptions import OTPVerificationError
from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.core.database.bulk_statements import build_session_insert
from domain.core.errors import ConflictError, InvalidError
from domain.core.keyring import Keyring
from domain.core.randomness import generate_random_letters
from models import TotpDevice

#: Base32 alphabet (RFC 4648 section 6) of the key that users enter into the app.
_BASE32_ALPHABET = string.ascii_uppercase + "234567"
#: Number of characters in a key (160 bits, as recommended in RFC 4226 section 4).
_SEED_LENGTH = 32
_CODE_DIGITS = 6
#: Accepted clock drift of the app in time steps, in either direction (RFC 6238 section 5.2).
_MAX_DRIFT_STEPS = 1


def generate_seed() -> str:
    """Return a new secret key in Base32."""
    return generate_random_letters(_BASE32_ALPHABET, _SEED_LENGTH)


def build_provisioning_uri(seed: str, *, username: str, instance: str) -> str:
    """Return the otpauth URI for the QR code."""
    return TOTP(seed).provisioning_uri(name=username, issuer_name=instance)


def normalize_totp_code(typed_code: str) -> str | None:
    """Remove spaces and dashes from a typed code.

    Return None if the code is malformed.
    """
    bare = "".join(unicodedata.normalize("NFKC", typed_code).replace("-", "").split())
    is_code = len(bare) == _CODE_DIGITS and bare.isascii() and bare.isdigit()
    return bare if is_code else None


def set_up_authenticator_app(work: UnitOfWork, user_id: int, seed: str, code: str) -> None:
    """Store an authenticator app's secret key after checking a code from the app.

    Raise InvalidError for a wrong code. Raise ConflictError if the user already has an app.
    """
    session, now = work.session, work.now
    step = _find_time_step(code, seed, now)
    if step is None:
        message = "This code does not match the key. Check the key and the clock of your device."
        raise InvalidError(message, field="code")
    insert = build_session_insert(TotpDevice, session=session).values(
        user_id=user_id,
        seed_ciphertext=work.policy(Keyring).encrypt(seed),
        created_at=now,
        confirmed_at=now,
        last_used_step=step,
    )
    made = session.scalar(insert.on_conflict_do_nothing().returning(TotpDevice.id))
    if made is None:
        raise ConflictError("You already have an authenticator app. Remove it first.", field="code")


def use_totp_code(
    user_id: int, code: str, *, session: Session, keyring: Keyring, now: datetime
) -> bool:
    """Consume a code from the user's app, and return whether the code was valid.

    A single UPDATE checks and claims the time step, so that only one of several requests with the
    same code succeeds.
    """
    app = session.scalar(
        select(TotpDevice).where(
            TotpDevice.user_id == user_id, TotpDevice.confirmed_at.is_not(None)
        )
    )
    step = _find_time_step(code, keyring.decrypt(app.seed_ciphertext), now) if app else None
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


def remove_authenticator_app(user_id: int, *, session: Session) -> bool:
    """Delete the user's authenticator app, and return whether the user had an app."""
    gone = delete(TotpDevice).where(TotpDevice.user_id == user_id).returning(TotpDevice.id)
    return session.scalar(gone) is not None


def _find_time_step(code: str, seed: str, now: datetime) -> int | None:
    """Return the time step of a code within the accepted drift, or None."""
    try:
        return TOTP(seed).verify_and_get_timecode(code, for_time=now, valid_window=_MAX_DRIFT_STEPS)
    except OTPVerificationError:
        return None
