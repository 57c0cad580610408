"""Creates, finds and changes accounts, and authenticates users by password."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy import and_, bindparam, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.accounts.attempt_counters import (
    AttemptLimit,
    consume_attempt,
    refund_attempt,
    reset_attempts,
)
from domain.accounts.factors.requirement import SecondFactorRule, find_group_requirement
from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.names import check_display_name, check_username
from domain.accounts.passwords import (
    HashCost,
    PasswordRules,
    check_password,
    check_password_strength,
    hash_password,
)
from domain.accounts.profiles import PROFILE_COLUMNS, Profile, build_profile
from domain.core.database.locks import commit_to_release_locks
from domain.core.database.pagination import MAX_ID
from domain.core.database.statements import SessionConnection, StatementConnection
from domain.core.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from domain.core.keyring import Keyring
from domain.core.time_zones import normalize_zone_name
from domain.core.types.base import get_column_values
from models import Group, User
from models.case_folding import fold_text

ACTIVE = "active"
#: State of an account that its owner created and that no administrator has approved yet.
PENDING = "pending"
#: State of an account that an administrator deactivated, or that was idle. It becomes active when
#: its owner signs in.
DEACTIVATED = "deactivated"
_SIGN_IN_STATES = frozenset({ACTIVE, DEACTIVATED})
#: Kinds of accounts. A bot is the account of a project or group access token, and a service account
#: is the account of an application. An erased account has only its ID left.
HUMAN, BOT, SERVICE, ERASED = "human", "bot", "service", "erased"
MACHINE_KINDS = frozenset({BOT, SERVICE})
#: SQL condition for accounts of people that are not locked, deactivated or pending approval.
IS_ACTIVE_HUMAN = and_(User.state == ACTIVE, User.kind == HUMAN)
_PROFILE_WITH_KIND_QUERY = select(*PROFILE_COLUMNS, User.kind)
_PROFILE_BY_ID_QUERY = _PROFILE_WITH_KIND_QUERY.where(User.id == bindparam("named"))
_PROFILE_BY_NAME_QUERY = _PROFILE_WITH_KIND_QUERY.where(User.username_key == bindparam("named"))
#: Page sizes that users can choose for lists, in items per page.
PAGE_SIZES = (20, 50, 100)


@dataclass(frozen=True, kw_only=True)
class UserView:
    """The fields of an account that pages, the API and commands use."""

    id: int
    username: str
    email: str
    name: str
    is_admin: bool
    #: Kind of the account: HUMAN, BOT, SERVICE or ERASED.
    kind: str
    state: str
    must_change_password: bool
    password_changed_at: datetime | None
    #: True if the account can be found by its address. False if it had the same address as another
    #: account before addresses had to be unique.
    is_found_by_email: bool
    #: True if the account has a password. False if it uses only a provider or a passkey.
    has_password: bool = True
    #: Time at which the email address was confirmed. None if the address is not confirmed.
    email_confirmed_at: datetime | None = None
    #: Time zone name in the IANA database.
    time_zone: str = "UTC"
    #: Number of items on each page of a list; None for the instance's default.
    page_size: int | None = None


def build_user_view(user: User) -> UserView:
    """Convert an account row to a `UserView`."""
    columns = get_column_values(user, UserView)
    return UserView(
        **columns,
        is_found_by_email=user.email_key is not None,
        has_password=bool(user.password_hash),
    )


@dataclass(frozen=True, kw_only=True)
class NewUser:
    """The fields of a new account."""

    username: str
    email: str
    name: str
    #: Password; None for an account that signs in through a provider or with a passkey.
    password: str | None
    is_admin: bool = False
    must_change_password: bool = False
    time_zone: str = "UTC"
    #: True if an administrator or a provider vouches for the email address.
    is_email_confirmed: bool = False
    #: Initial state: ACTIVE or PENDING.
    state: str = ACTIVE


def create_user(
    new_user: NewUser, *, session: Session, now: datetime, rules: PasswordRules
) -> UserView:
    """Create an account.

    The password is checked and hashed first, so no transaction should be open yet. Raise
    InvalidError or ConflictError, with the name of the field, if a value is not accepted.
    """
    try:
        check_username(new_user.username)
    except ValueError as error:
        raise InvalidError(str(error), field="username") from error
    validate_display_name(new_user.name)
    password_hash = ""
    if new_user.password is not None:
        check_new_password(
            new_user.password, new_user.username, new_user.email, rules, field="password"
        )
        password_hash = hash_password(new_user.password, rules.cost)
    email = normalize_email(new_user.email)
    time_zone = normalize_zone_name(new_user.time_zone)
    check_not_group_name(new_user.username, session=session)
    user = User(
        username=new_user.username,
        email=email,
        name=new_user.name or new_user.username,
        password_hash=password_hash,
        is_admin=new_user.is_admin,
        time_zone=time_zone,
        must_change_password=new_user.must_change_password,
        state=new_user.state,
        created_at=now,
        password_changed_at=None,
        last_sign_in_at=None,
        email_confirmed_at=now if new_user.is_email_confirmed else None,
    )
    try:
        with session.begin_nested():  # This assigns the ID and detects an existing account.
            session.add(user)
    except IntegrityError as error:
        message = (
            f'A user with the name "{new_user.username}" or the email address {email} '
            "already exists."
        )
        raise ConflictError(message, field="username") from error
    return build_user_view(user)


def check_new_password(
    password: str, username: str, email: str, rules: PasswordRules, *, field: str
) -> None:
    """Check that a new password is strong enough.

    Raise InvalidError, with the name of the field, if the password is too weak.
    """
    try:
        check_password_strength(password, username=username, email=email, minimum=rules.minimum)
    except ValueError as error:
        raise InvalidError(str(error), field=field) from error


def check_not_group_name(username: str, *, session: Session, user_id: int = 0) -> None:
    """Check that a username is not the path of another owner's group.

    The user's personal namespace needs this path. Raise ConflictError if there is such a group.
    """
    holder = select(Group.owner_id).where(Group.path_key == fold_text(username))
    if any(owner_id != user_id for owner_id in session.scalars(holder)):
        raise ConflictError(f'A group with the name "{username}" exists.', field="username")


def validate_display_name(name: str) -> None:
    """Check that a display name is valid.

    Raise InvalidError for the `name` field if the display name is not valid.
    """
    try:
        check_display_name(name)
    except ValueError as error:
        raise InvalidError(str(error), field="name") from error


def normalize_email(email: str) -> str:
    """Return a normalized email address, without a DNS query.

    Raise InvalidError if the address is malformed.
    """
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415 - see below

    # The package is imported here, because it loads the tables of internationalized domain names,
    # which only this function needs.
    try:
        return validate_email(email, check_deliverability=False, test_environment=True).normalized
    except EmailNotValidError as error:
        message = f'"{email}" is not a valid email address. {error}'
        raise InvalidError(message, field="email") from error


def find_user(login: str, *, session: Session) -> UserView | None:
    """Return the user with this username or email address, or None.

    The comparison is case-insensitive.
    """
    user = _find_user_row(login, session=session)
    return build_user_view(user) if user else None


def _find_user_row(login: str, *, session: Session) -> User | None:
    wanted = fold_text(login.strip())
    if "\x00" in wanted:
        return None  # No username contains NUL, and PostgreSQL rejects it.
    # An email address contains an @ and a username does not, so at most one row matches.
    return session.scalar(
        select(User).where(
            or_(User.username_key == wanted, User.email_key == wanted), User.kind != ERASED
        )
    )


def get_user(login: str, *, session: Session) -> UserView:
    """Return the user with this name or email address.

    Raise NotFoundError if there is no such user.
    """
    user = find_user(login, session=session)
    if user is None:
        raise NotFoundError(f'User "{login}" not found.')
    return user


@dataclass(frozen=True, kw_only=True)
class SignInAttempt:
    """A sign-in attempt with a login name and a password, and the limits that apply to it."""

    login: str
    password: str
    account_limit: AttemptLimit
    #: Limit for the IP address. Many users share it, so a successful attempt does not reset it.
    address_limit: AttemptLimit
    cost: HashCost
    #: Limits by account ID, for a browser from which the account has signed in before. Because of
    #: the separate counter, guesses from elsewhere do not lock out this browser.
    browser_limits: Mapping[int, AttemptLimit] = field(default_factory=dict)

    def build_counters(self, user: User | None) -> "AttemptCounters":
        """Return the counters for an attempt.

        `user` is the account with the entered login, or None if there is no such account.
        """
        known = self.browser_limits.get(user.id) if user else None
        if known is not None:
            return AttemptCounters(own=known, shared=None)
        # The account has one counter, whether the name or the email address was entered.
        subject = _format_limit_subject(user.username if user else self.login)
        account_limit = replace(self.account_limit, subject=subject)
        return AttemptCounters(own=account_limit, shared=self.address_limit)


@dataclass(frozen=True, kw_only=True)
class AttemptCounters:
    """The attempt counters that one sign-in attempt increases."""

    #: Counter that a successful attempt resets.
    own: AttemptLimit
    #: Counter that a successful attempt reduces by one.
    shared: AttemptLimit | None

    def count_attempt(self, *, session: Session, keyring: Keyring, now: datetime) -> None:
        """Count the attempt.

        Raise TooManyAttemptsError if a limit is exceeded.
        """
        for limit in (self.own, self.shared):
            if limit is not None:
                consume_attempt(limit, session=session, keyring=keyring, now=now)

    def reset_counters(self, *, session: Session, keyring: Keyring) -> None:
        """Reset or reduce the counters after a successful attempt."""
        reset_attempts(self.own, session=session, keyring=keyring)
        if self.shared is not None:
            refund_attempt(self.shared, session=session, keyring=keyring)


def authenticate_user(
    attempt: SignInAttempt, *, session: Session, keyring: Keyring, now: datetime
) -> UserView | None:
    """Return the user with this login and password, or None.

    The account is active, deactivated or pending approval. An unknown login, a wrong password and a
    locked account cannot be distinguished by the response or the response time. The caller must
    check the state, and whether a second factor is required. Raise TooManyAttemptsError if a limit
    is exceeded.
    """
    return _check_password_with_limits(
        attempt, _can_authenticate, session=session, keyring=keyring, now=now
    )


def authenticate_by_password_only(
    attempt: SignInAttempt,
    rule: SecondFactorRule,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> UserView | None:
    """Authenticate a user where no second factor can be requested, as in the password grant.

    The attempt fails for an account that has or needs a second factor, or must change its password.
    It is counted like a wrong password, so that the counter does not reveal whether the password
    was correct. Raise TooManyAttemptsError if a limit is exceeded.
    """

    def is_password_sufficient(user: User | None) -> bool:
        # Run the queries for an unknown name as well, so that the response time is the same.
        wants_more = has_second_factor(user.id if user else 0, session=session)
        of_group = find_group_requirement(
            user.id if user else 0, connection=SessionConnection(session), now=now
        )
        wants_more = wants_more or (of_group is not None and of_group.begins <= now)
        if user is None or wants_more or user.must_change_password:
            return False
        return _is_active_user(user) and not rule.requires_second_factor_now(
            now.date(), is_admin=user.is_admin
        )

    return _check_password_with_limits(
        attempt, is_password_sufficient, session=session, keyring=keyring, now=now
    )


def _check_password_with_limits(
    attempt: SignInAttempt,
    is_enough: Callable[[User | None], bool],
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> UserView | None:
    user = _find_user_row(attempt.login, session=session)
    limits = attempt.build_counters(user)
    limits.count_attempt(session=session, keyring=keyring, now=now)
    # This runs before the password check, so that the response time does not depend on the result.
    is_welcome = is_enough(user)
    known_hash = user.password_hash if user else None
    seen = (user.id, user.password_changed_at) if user else None
    commit_to_release_locks(session)
    verdict = check_password(attempt.password, known_hash, attempt.cost)
    if not (user and seen and known_hash and is_welcome and verdict.is_right):
        return None
    new_hash = known_hash
    if verdict.is_hash_outdated:
        new_hash = hash_password(attempt.password, attempt.cost)
    if not is_password_unchanged(*seen, session=session) or not is_enough(user):
        return None
    user.password_hash = new_hash
    limits.reset_counters(session=session, keyring=keyring)
    return build_user_view(user)


def is_password_unchanged(user_id: int, changed_at: datetime | None, *, session: Session) -> bool:
    """Lock an account, and return whether its password was last changed at `changed_at`.

    The hashes are not compared, because concurrent sign-ins can rehash an unchanged password.
    """
    lock_account_row(user_id, session=session)
    found = session.get(User, user_id)
    return found is not None and found.password_changed_at == changed_at


def lock_account_row(user_id: int, *, session: Session) -> None:
    """Lock an account until the end of the transaction, and read it again.

    Without the lock, a sign-in could replace the hash of a new password with a hash of the previous
    password. A sign-in could also be created after a password change has closed all sign-ins.
    """
    # KEY SHARE does not block inserts of rows that refer to the user, such as audit events.
    unshared = {"key_share": True}
    session.get(User, user_id, populate_existing=True, with_for_update=unshared)


def _is_active_user(user: User | None) -> bool:
    """Return whether a user exists, is a person and has an active account.

    Bots cannot sign in.
    """
    return user is not None and user.state == ACTIVE and user.kind == HUMAN


def _can_authenticate(user: User | None) -> bool:
    """Return whether a user exists, is a person and has an account that is not locked."""
    return user is not None and user.state in {*_SIGN_IN_STATES, PENDING} and user.kind == HUMAN


def find_sign_in_user(user_id: int, *, session: Session) -> UserView | None:
    """Return the user with this ID if they may sign in, or None.

    The account may be deactivated: signing in activates it.
    """
    user = session.get(User, user_id)
    if user is None or user.state not in _SIGN_IN_STATES or user.kind != HUMAN:
        return None
    return build_user_view(user)


def find_active_user(user_id: int, *, session: Session) -> UserView | None:
    """Return the user with this ID if the account is active, or None."""
    user = session.get(User, user_id)
    return build_user_view(user) if user is not None and _is_active_user(user) else None


def reset_failed_sign_ins(username: str, *, session: Session, keyring: Keyring) -> None:
    """Reset a user's counter of failed sign-in attempts."""
    limit = AttemptLimit(subject=_format_limit_subject(username), attempts=0, window=timedelta(0))
    reset_attempts(limit, session=session, keyring=keyring)


def _format_limit_subject(login: str) -> str:
    return f"sign-in account {fold_text(login.strip())}"


def change_password(
    user_id: int, new_password: str, *, session: Session, now: datetime, rules: PasswordRules
) -> None:
    """Set a password chosen by the user.

    Raise InvalidError if the password is too weak.
    """
    user = build_user_view(session.get_one(User, user_id))
    commit_to_release_locks(session)
    hashed = hash_new_password(user, new_password, rules)
    store_password(user_id, hashed, session=session, now=now)


def hash_new_password(user: UserView, new_password: str, rules: PasswordRules) -> str:
    """Return the hash of a password chosen by the user.

    Raise InvalidError if the password is too weak.
    """
    check_new_password(new_password, user.username, user.email, rules, field="new_password")
    return hash_password(new_password, rules.cost)


def store_password(user_id: int, password_hash: str, *, session: Session, now: datetime) -> None:
    """Store the hash of a password chosen by the user."""
    user = session.get_one(User, user_id)
    user.password_hash, user.password_changed_at = password_hash, now
    user.must_change_password = False


def change_profile(
    user_id: int, name: str, *, time_zone: str | None = None, session: Session
) -> None:
    """Change the display name of a user, and the time zone unless it is None.

    Raise InvalidError for an invalid value.
    """
    validate_display_name(name)
    user = session.get_one(User, user_id)
    place = user.time_zone if time_zone is None else normalize_zone_name(time_zone)
    user.name, user.time_zone = name, place


def clear_erased_account(user_id: int, *, pseudonym: str, session: Session) -> None:
    """Clear all fields of an erased account except its ID, and disable the account.

    The new name and email address cannot belong to any user. Usernames contain no spaces, and
    `.invalid` has no mail servers (RFC 2606 section 2).
    """
    user = session.get_one(User, user_id)
    user.username, user.name = pseudonym, "Deleted user"
    user.email = f"{user.id}@deleted.invalid"
    user.password_hash, user.must_change_password = "", False
    user.kind, user.state, user.is_admin = ERASED, "blocked", False
    user.last_sign_in_at = user.password_changed_at = user.email_confirmed_at = None
    user.idle_noticed_at = None


def get_sudo_profile(named: str, *, connection: StatementConnection) -> Profile:
    """Return the profile of the user with this ID or username, for sudo.

    Raise NotFoundError if there is no such user. Raise ForbiddenError for a bot or an account that
    is not active.
    """
    is_number = named.isascii() and named.isdecimal()
    is_found = (
        _PROFILE_BY_ID_QUERY if is_number and int(named) <= MAX_ID else _PROFILE_BY_NAME_QUERY
    )
    row = connection.fetch_first_row(
        is_found, {"named": int(named) if is_found is _PROFILE_BY_ID_QUERY else fold_text(named)}
    )
    kind = row[len(PROFILE_COLUMNS)] if row else ERASED
    if row is None or kind == ERASED:
        raise NotFoundError("The user in `sudo` was not found.")
    profile = build_profile(row)
    if profile.state != ACTIVE or kind != HUMAN:
        why = "is a bot" if kind != HUMAN else f"is {profile.state}"
        raise ForbiddenError(f"You cannot act as {profile.username}, because the account {why}.")
    return profile


@action("own_account.change")
def set_page_size(work: UnitOfWork, size: int) -> None:
    """Set the number of rows per page in the caller's lists.

    Raise InvalidError for a size that is not available.
    """
    if size not in PAGE_SIZES:
        sizes = f"{', '.join(map(str, PAGE_SIZES[:-1]))} or {PAGE_SIZES[-1]}"
        message = f"The number of rows must be {sizes}."
        raise InvalidError(message, field="size")
    work.session.get_one(User, work.actor.id).page_size = size
