"""The step after the password, and the passkey that takes the place of both: counted like guesses.

What is refused has to be answered without rolling back, so that it stays counted.
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
    give_back_attempt,
)
from domain.accounts.factors import recovery_codes, totp
from domain.accounts.factors.passkey_ceremonies import Assertion, PasskeyRefusedError, Reply
from domain.accounts.factors.passkeys import use_passkey
from domain.accounts.signing_in.attempts import KnockLimits
from domain.errors import InvalidError
from domain.keyring import Keyring


class WrongCodeError(InvalidError):
    """The code proves nothing."""

    def __init__(self) -> None:
        """Say the same of a wrong code, an old one, and one that was used."""
        message = (
            "This code is not right, or it was used already. "
            "Wait for the next one of your app, or take another recovery code."
        )
        super().__init__(message, field="code")


class NoCodeError(InvalidError):
    """What was typed cannot be a code: a slip of the pen, and no guess."""

    def __init__(self) -> None:
        """Say what codes look like."""
        message = "A code of an app has six digits, a recovery code twelve letters and digits."
        super().__init__(message, field="code")


class CodeKind(Enum):
    """Where a code came from, in words."""

    APP = "authenticator app"
    RECOVERY = "recovery code"


@dataclass(frozen=True, kw_only=True)
class Step:
    """Somebody tries to take the step, from somewhere."""

    #: Empty if they came with a passkey that nobody has.
    user_id: int | None
    address: str | None
    limits: KnockLimits
    #: Of the browser, if the account has signed in there before.
    mark: str | None = None

    def limits_on(self, what: str) -> tuple[AttemptLimit, ...]:
        """Return how often it may be tried: from the address, and for the account.

        A browser that is known is counted alone, and not with all others at its address.
        Codes and passkeys are counted apart: who guesses codes must not lock the owner out, who
        has a passkey.
        """
        from_address = self.limits.address_limit(self.address)
        if self.mark is not None:
            from_address = self.limits.browser_limit(self.mark)
        if self.user_id is None:
            return (from_address,)
        for_account = AttemptLimit(
            subject=f"{what}, user {self.user_id}",
            attempts=self.limits.second_factor_per_account,
            window=self.limits.window,
        )
        return from_address, for_account


def prove_with_code(
    step: Step, typed: str, *, session: Session, keyring: Keyring, now: datetime
) -> CodeKind:
    """Take a code of the app or a recovery code, and return which of them it was.

    Raises NoCodeError, WrongCodeError or TooManyAttemptsError.
    """
    app_code, recovery_code = totp.read_code(typed), recovery_codes.read_code(typed)
    if app_code is None and recovery_code is None:
        raise NoCodeError
    limits = step.limits_on("second factor")
    _claim(limits, session, keyring, now)
    kind = CodeKind.APP if app_code else CodeKind.RECOVERY
    use = totp.use_code if app_code else recovery_codes.use_code
    code = app_code or recovery_code or ""
    if step.user_id is None or not use(
        step.user_id, code, session=session, keyring=keyring, now=now
    ):
        raise WrongCodeError
    _clear(limits, session, keyring)
    return kind


def prove_with_passkey(
    step: Step,
    reply: Reply,
    verification: UserVerificationRequirement,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> Assertion:
    """Take a passkey of the user; without a password before it, verification is REQUIRED.

    Raises PasskeyRefusedError or TooManyAttemptsError.
    """
    limits = step.limits_on("passkey")
    _claim(limits, session, keyring, now)
    if step.user_id is None:
        raise PasskeyRefusedError
    proof = use_passkey(
        step.user_id, reply, verification, session=session, keyring=keyring, now=now
    )
    _clear(limits, session, keyring)
    return proof


def _claim(
    limits: tuple[AttemptLimit, ...], session: Session, keyring: Keyring, now: datetime
) -> None:
    for limit in limits:
        claim_attempt(limit, session=session, keyring=keyring, now=now)


def _clear(limits: tuple[AttemptLimit, ...], session: Session, keyring: Keyring) -> None:
    """Start anew for the account; an address, which many share, gets back this one attempt."""
    from_address, *for_account = limits
    give_back_attempt(from_address, session=session, keyring=keyring)
    for limit in for_account:
        forget_attempts(limit, session=session, keyring=keyring)
