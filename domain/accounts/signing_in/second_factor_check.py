"""Second-factor check after the password, and sign-in by passkey alone, with attempt limits.

The caller must not roll back after a refusal, so that the attempt stays counted.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from sqlalchemy.orm import Session
from webauthn.helpers.structs import UserVerificationRequirement

from domain.accounts.attempt_limits import (
    AttemptLimit,
    claim_attempt,
    forget_attempts,
    refund_attempt,
)
from domain.accounts.factors import recovery_codes, totp
from domain.accounts.factors.passkey_ceremonies import (
    Assertion,
    CeremonyResponse,
    PasskeyRefusedError,
)
from domain.accounts.factors.passkeys import use_passkey
from domain.accounts.signing_in.attempts import SignInLimits
from domain.errors import InvalidError
from domain.keyring import Keyring


class WrongCodeError(InvalidError):
    """The code is wrong, expired or already used."""

    def __init__(self) -> None:
        """Use one message for wrong, expired and used codes."""
        message = (
            "This code is wrong or was already used. "
            "Wait for the next code of your app, or use another recovery code."
        )
        super().__init__(message, field="code")


class NoCodeError(InvalidError):
    """The input is malformed; it does not count as an attempt."""

    def __init__(self) -> None:
        """Describe the format of the codes."""
        message = "App codes have six digits, recovery codes twelve letters and digits."
        super().__init__(message, field="code")


class CodeKind(Enum):
    """The kind of a code; the value is its name for people."""

    APP = "authenticator app"
    RECOVERY = "recovery code"


@dataclass(frozen=True, kw_only=True)
class SecondFactorAttempt:
    """An attempt to pass the second-factor check."""

    #: None for a passkey that is not registered.
    user_id: int | None
    address: str | None
    limits: SignInLimits
    #: The id in the device cookie, if the account has signed in from this browser before.
    device_id: str | None = None

    def limits_on(self, what: str) -> tuple[AttemptLimit, ...]:
        """Return the limits for the IP address (or the known browser) and for the account.

        A known browser has a limit of its own instead of its address's. Codes and passkeys are
        counted separately, so that guessed codes do not lock out an owner with a passkey.
        """
        from_address = self.limits.address_limit(self.address)
        if self.device_id is not None:
            from_address = self.limits.browser_limit(self.device_id)
        if self.user_id is None:
            return (from_address,)
        for_account = AttemptLimit(
            subject=f"{what}, user {self.user_id}",
            attempts=self.limits.second_factor_per_account,
            window=self.limits.window,
        )
        return from_address, for_account


def prove_with_code(
    attempt: SecondFactorAttempt, typed: str, *, session: Session, keyring: Keyring, now: datetime
) -> CodeKind:
    """Check and consume an app code or a recovery code, and return its kind.

    Raises NoCodeError, WrongCodeError or TooManyAttemptsError.
    """
    app_code, recovery_code = totp.read_code(typed), recovery_codes.read_code(typed)
    if app_code is None and recovery_code is None:
        raise NoCodeError
    limits = attempt.limits_on("second factor")
    _claim(limits, session, keyring, now)
    kind = CodeKind.APP if app_code else CodeKind.RECOVERY
    use = totp.use_code if app_code else recovery_codes.use_code
    code = app_code or recovery_code or ""
    if attempt.user_id is None or not use(
        attempt.user_id, code, session=session, keyring=keyring, now=now
    ):
        raise WrongCodeError
    _clear(limits, session, keyring)
    return kind


def prove_with_passkey(
    attempt: SecondFactorAttempt,
    reply: CeremonyResponse,
    verification: UserVerificationRequirement,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> Assertion:
    """Check a passkey of the user; pass REQUIRED if no password was checked before.

    Raises PasskeyRefusedError or TooManyAttemptsError.
    """
    limits = attempt.limits_on("passkey")
    _claim(limits, session, keyring, now)
    if attempt.user_id is None:
        raise PasskeyRefusedError
    assertion = use_passkey(
        attempt.user_id, reply, verification, session=session, keyring=keyring, now=now
    )
    _clear(limits, session, keyring)
    return assertion


def _claim(
    limits: tuple[AttemptLimit, ...], session: Session, keyring: Keyring, now: datetime
) -> None:
    for limit in limits:
        claim_attempt(limit, session=session, keyring=keyring, now=now)


def _clear(limits: tuple[AttemptLimit, ...], session: Session, keyring: Keyring) -> None:
    """Reset the account's counter, and subtract this attempt from the shared one."""
    from_address, *for_account = limits
    refund_attempt(from_address, session=session, keyring=keyring)
    for limit in for_account:
        forget_attempts(limit, session=session, keyring=keyring)
