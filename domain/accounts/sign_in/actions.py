"""Sign-in with a password and a second factor, sign-in with only a passkey, and sign-out.

Failed attempts are counted, and the count is kept when the error is raised.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import update

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.accounts.attempt_counters import (
    AttemptLimit,
    consume_attempt,
    refund_attempt,
    reset_attempts,
)
from domain.accounts.factors import recovery_codes, totp
from domain.accounts.factors.passkeys import (
    VERIFICATION_PREFERRED,
    VERIFICATION_REQUIRED,
    CeremonyResponse,
    InvalidPasskeyError,
    PasskeyAssertion,
    find_passkey_owner_id,
    use_passkey,
)
from domain.accounts.factors.second_factors import get_second_factors
from domain.accounts.passwords import HashCost
from domain.accounts.sign_in.sessions import (
    Authentication,
    build_passkey_methods,
    close_sign_in,
    replace_sign_in,
)
from domain.accounts.users import (
    ACTIVE,
    DEACTIVATED,
    PENDING,
    SignInAttempt,
    UserView,
    authenticate_user,
    find_sign_in_user,
    find_user,
)
from domain.audit.events import EventKind
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import ForbiddenError, InvalidError, TooManyAttemptsError
from domain.core.ip_addresses import get_client_network
from domain.core.keyring import CredentialType, Keyring
from models import SignIn, User
from models.case_folding import fold_text

_PENDING_MESSAGE = (
    "This account is pending approval by an administrator. You will get an email when it is "
    "approved."
)


@dataclass(frozen=True, kw_only=True)
class SignInLimits:
    """The instance's limits on failed sign-in and second-factor attempts."""

    per_account: int
    per_address: int
    second_factor_per_account: int
    window: timedelta
    cost: HashCost

    def build_attempt(
        self,
        login: str,
        password: str,
        *,
        address: str | None,
        device_ids: Mapping[int, str] | None = None,
    ) -> SignInAttempt:
        """Build a sign-in attempt, with the limits that apply to it.

        `address` is the IP address of the attempt. `device_ids` maps accounts that have signed in
        from the same browser to the IDs in the browser's device cookie.
        """
        return SignInAttempt(
            login=login,
            password=password,
            account_limit=AttemptLimit(
                subject=f"sign-in account {fold_text(login.strip())}",
                attempts=self.per_account,
                window=self.window,
            ),
            address_limit=self.build_address_limit(address),
            browser_limits={
                user_id: self.build_browser_limit(device_id)
                for user_id, device_id in (device_ids or {}).items()
            },
            cost=self.cost,
        )

    def build_browser_limit(self, device_id: str) -> AttemptLimit:
        """Return the limit for a browser from which an account has signed in before."""
        return AttemptLimit(
            subject=f"sign-in browser {device_id}", attempts=self.per_account, window=self.window
        )

    def build_email_limit(self, user_id: int) -> AttemptLimit:
        """Return the limit on confirmation and password reset emails for a user."""
        return AttemptLimit(
            subject=f"email address, user {user_id}", attempts=self.per_account, window=self.window
        )

    def build_address_limit(self, address: str | None) -> AttemptLimit:
        """Return the limit for an IP address, which applies to all steps of signing in."""
        return AttemptLimit(
            subject=f"sign-in address {get_client_network(address or '')}",
            attempts=self.per_address,
            window=self.window,
        )


class WrongCodeError(InvalidError):
    """Error for a code that is wrong, expired or already used."""

    def __init__(self) -> None:
        """Use the same message for wrong, expired and used codes."""
        message = (
            "This code is wrong or was already used. "
            "Wait for the next code of your app, or use another recovery code."
        )
        super().__init__(message, field="code")


class MalformedCodeError(InvalidError):
    """Error for malformed input, which does not count as an attempt."""

    def __init__(self) -> None:
        """Build a message that describes the format of the codes."""
        message = "App codes have six digits. Recovery codes have twelve letters and digits."
        super().__init__(message, field="code")


@action("signing_in.prove")
def authenticate_with_password(work: UnitOfWork, attempt: SignInAttempt) -> UserView | None:
    """Authenticate a user by login and password.

    Return None if the login or the password is wrong. Raise TooManyAttemptsError if a limit is
    exceeded. Raise ForbiddenError if the password is correct, but the account is pending approval.
    """
    session, keyring = work.session, work.policy(Keyring)
    try:
        user = authenticate_user(attempt, session=session, keyring=keyring, now=work.now)
    except TooManyAttemptsError:
        commit_to_release_locks(session)
        raise
    if user is None:
        # An unknown login is not recorded, because it may be a password in the wrong field.
        known = find_user(attempt.login, session=session)
        user_id = known.id if known else None
        work.record_audit_event(
            EventKind.SIGN_IN_FAILED, user_id=user_id, details={"wrong": "password"}
        )
        commit_to_release_locks(session)  # Do not hold locks while the page is rendered.
    elif user.state == PENDING:
        raise ForbiddenError(_PENDING_MESSAGE)
    return user


@action("signing_in.prove")
def check_second_factor_code(
    work: UnitOfWork, user_id: int, typed: str, *, device_id: str | None
) -> None:
    """Check and consume an app code or a recovery code as the second factor.

    `device_id` is the ID in the device cookie, if the account has signed in from this browser
    before. Raise MalformedCodeError for a malformed code, WrongCodeError for a wrong code, and
    TooManyAttemptsError if a limit is exceeded.
    """
    app_code, recovery_code = (
        totp.normalize_totp_code(typed),
        recovery_codes.normalize_recovery_code(typed),
    )
    code = app_code or recovery_code
    if code is None:
        raise MalformedCodeError
    use = totp.use_totp_code if app_code else recovery_codes.use_recovery_code
    session, keyring = work.session, work.policy(Keyring)
    attempt = _FactorAttempt(what="second factor", user_id=user_id, device_id=device_id)
    with _count_attempt(work, attempt, EventKind.SECOND_FACTOR_FAILED, user_id):
        if not use(user_id, code, session=session, keyring=keyring, now=work.now):
            raise WrongCodeError
    if not app_code:
        left = get_second_factors(user_id, session=session).recovery_codes_left
        _record_user_event(work, user_id, EventKind.RECOVERY_CODE_USED, left=left)


@action("signing_in.prove")
def check_second_factor_passkey(
    work: UnitOfWork, user_id: int, reply: CeremonyResponse, *, device_id: str | None
) -> PasskeyAssertion:
    """Check a passkey as the second factor.

    Raise InvalidPasskeyError if the passkey is not valid, and TooManyAttemptsError if a limit is
    exceeded.
    """
    attempt = _FactorAttempt(what="passkey", user_id=user_id, device_id=device_id)
    with _count_attempt(work, attempt, EventKind.SECOND_FACTOR_FAILED, user_id):
        return use_passkey(work, user_id, reply, VERIFICATION_PREFERRED)


@action("signing_in.prove")
def authenticate_with_passkey(work: UnitOfWork, reply: CeremonyResponse) -> Authentication:
    """Authenticate the owner of a passkey without a password.

    Raise InvalidPasskeyError if the passkey is not valid, and TooManyAttemptsError if a limit is
    exceeded.
    """
    owner_id = find_passkey_owner_id(reply, session=work.session)
    user = find_sign_in_user(owner_id, session=work.session) if owner_id else None
    attempt = _FactorAttempt(what="passkey", user_id=user.id if user else None)
    with _count_attempt(work, attempt, EventKind.SIGN_IN_FAILED, owner_id):
        if user is None:
            raise InvalidPasskeyError
        assertion = use_passkey(work, user.id, reply, VERIFICATION_REQUIRED)
    return Authentication(user_id=user.id, methods=build_passkey_methods(assertion))


@action("signing_in.sign_in")
def sign_in(
    work: UnitOfWork,
    authentication: Authentication,
    lifetime: timedelta,
    *,
    former_id: int | None,
    browser_zone: str | None = None,
) -> str:
    """Start a session for the user, and replace the browser's previous session.

    The first sign-in replaces the account's default time zone, UTC, with the browser's time zone.
    Return the token for the cookie.
    """
    credential = work.policy(Keyring).issue_credential(CredentialType.SIGN_IN)
    source, user_id = work.actor.source, authentication.user_id
    row = SignIn(
        token_digest=credential.digest,
        user_id=user_id,
        created_at=authentication.authenticated_at or work.now,
        expires_at=work.now + lifetime,
        address=source.address,
        user_agent=(source.user_agent or "")[:255] or None,
        methods=" ".join(authentication.methods),
        identity_id=authentication.identity_id,
        is_proof=authentication.is_proof,
    )
    work.session.add(row)
    user = work.session.get_one(User, user_id)
    if browser_zone and user.last_sign_in_at is None and user.time_zone == "UTC":
        user.time_zone = browser_zone
    seen = update(User).where(User.id == user_id).values(last_sign_in_at=work.now)
    work.session.execute(seen)
    _activate_account(work, user_id)
    if former_id is not None:
        work.session.flush()  # Flushing assigns the ID of the new row.
        replace_sign_in(former_id, row.id, user_id, session=work.session)
    _record_user_event(work, user_id, EventKind.SIGNED_IN, methods=list(authentication.methods))
    return credential.clear


def _activate_account(work: UnitOfWork, user_id: int) -> None:
    """Activate a deactivated account."""
    if work.session.get_one(User, user_id).state != DEACTIVATED:
        return
    # An administrator may have locked the account in the meantime.
    theirs = update(User).where(User.id == user_id, User.state == DEACTIVATED)
    again = theirs.values(state=ACTIVE, idle_noticed_at=None).returning(User.id)
    if work.session.scalar(again) is not None:
        _record_user_event(work, user_id, EventKind.USER_ACTIVATED)


@action("signing_in.sign_out")
def sign_out(work: UnitOfWork, sign_in_id: int, application: str = "") -> None:
    """End the session of this browser.

    `application` is the application that requested the sign-out, or an empty string if the user
    requested it.
    """
    work.record_audit_event(EventKind.SIGNED_OUT, user_id=work.actor.id, subject=application)
    close_sign_in(sign_in_id, session=work.session)


@dataclass(frozen=True, kw_only=True)
class _FactorAttempt:
    """An attempt to authenticate with a code or a passkey."""

    #: Kind of attempt. Codes and passkeys are counted separately, so that guessed codes do not lock
    #: out an owner who has a passkey.
    what: str
    #: ID of the user. None for a passkey that is not registered.
    user_id: int | None
    device_id: str | None = None

    def list_limits(self, work: UnitOfWork) -> tuple[AttemptLimit, ...]:
        """Return the limits for the IP address (or the known browser) and for the account.

        A known browser has its own limit instead of the limit of its address.
        """
        known = work.policy(SignInLimits)
        from_address = known.build_address_limit(work.actor.source.address)
        if self.device_id is not None:
            from_address = known.build_browser_limit(self.device_id)
        if self.user_id is None:
            return (from_address,)
        for_account = AttemptLimit(
            subject=f"{self.what}, user {self.user_id}",
            attempts=known.second_factor_per_account,
            window=known.window,
        )
        return from_address, for_account


@contextmanager
def _count_attempt(
    work: UnitOfWork, attempt: _FactorAttempt, failure: EventKind, user_id: int | None
) -> Iterator[None]:
    """Count an attempt before it is checked.

    If the attempt fails, the count and the failure event are committed. If the attempt succeeds,
    the account's counter is reset, and this attempt is subtracted from the shared counter.
    """
    session, keyring = work.session, work.policy(Keyring)
    from_address, *for_account = limits = attempt.list_limits(work)
    try:
        for limit in limits:
            consume_attempt(limit, session=session, keyring=keyring, now=work.now)
        yield
    except (WrongCodeError, InvalidPasskeyError, TooManyAttemptsError) as error:
        if not isinstance(error, TooManyAttemptsError):
            wrong = "code" if isinstance(error, WrongCodeError) else "passkey"
            work.record_audit_event(failure, user_id=user_id, details={"wrong": wrong})
        commit_to_release_locks(session)
        raise
    refund_attempt(from_address, session=session, keyring=keyring)
    for limit in for_account:
        reset_attempts(limit, session=session, keyring=keyring)


def _record_user_event(work: UnitOfWork, user_id: int, kind: EventKind, **details: object) -> None:
    """Record an event for a user who is not signed in yet."""
    name = work.session.get_one(User, user_id).username
    work.with_actor(user_id, name).record_audit_event(kind, user_id=user_id, details=details)
