"""Makes accounts, finds them, and checks who knocks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.accounts.attempt_limits import (
    AttemptLimit,
    claim_attempt,
    forget_attempts,
    give_back_attempt,
)
from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.names import check_display_name, check_username
from domain.accounts.passwords import (
    HashCost,
    PasswordRules,
    check_password,
    check_password_strength,
    hash_password,
)
from domain.database.locks import release_locks
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.keyring import Keyring
from models import User
from models.folding import fold

ACTIVE = "active"
#: Kinds of accounts: a bot stands for an access token of a project or a group; of who was erased
#: the number alone is left.
HUMAN, BOT, ERASED = "human", "bot", "erased"


@dataclass(frozen=True, kw_only=True)
class NewUser:
    """What an account is made of."""

    username: str
    email: str
    name: str
    password: str
    is_admin: bool = False


def create_user(new: NewUser, *, session: Session, now: datetime, rules: PasswordRules) -> User:
    """Store a new account, or raise InvalidError or ConflictError naming the field.

    The password is judged and hashed first: no transaction should have begun.
    """
    try:
        check_username(new.username)
    except ValueError as error:
        raise InvalidError(str(error), field="username") from error
    check_name(new.name)
    check_new_password(new.password, username=new.username, email=new.email, minimum=rules.minimum)
    email = checked_email(new.email)
    password_hash = hash_password(new.password, rules.cost)
    user = User(
        username=new.username,
        email=email,
        name=new.name or new.username,
        password_hash=password_hash,
        is_admin=new.is_admin,
        state=ACTIVE,
        created_at=now,
        password_changed_at=None,
        last_sign_in_at=None,
    )
    try:
        with session.begin_nested():  # to learn the id, and whether there is one already
            session.add(user)
    except IntegrityError as error:
        message = f"A user with the name “{new.username}” or the address {email} exists already."
        raise ConflictError(message, field="username") from error
    return user


def check_new_password(password: str, *, username: str, email: str, minimum: int) -> None:
    """Raise InvalidError for the field `new_password` if a password is too easy."""
    try:
        check_password_strength(password, username=username, email=email, minimum=minimum)
    except ValueError as error:
        raise InvalidError(str(error), field="new_password") from error


def check_name(name: str) -> None:
    """Raise InvalidError for the field `name` if nobody can be shown it."""
    try:
        check_display_name(name)
    except ValueError as error:
        raise InvalidError(str(error), field="name") from error


def checked_email(email: str) -> str:
    """Return the address in its normal form, or raise InvalidError; nothing is looked up."""
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415 - see below

    # Imported here: it loads the tables of internationalized domain names, which no hot path
    # and no command but this one needs.
    try:
        return validate_email(email, check_deliverability=False, test_environment=True).normalized
    except EmailNotValidError as error:
        message = f"“{email}” is not an e-mail address. {error}"
        raise InvalidError(message, field="email") from error


def find_user(login: str, *, session: Session) -> User | None:
    """Return the user of this name or e-mail address, in any spelling."""
    wanted = fold(login.strip())
    if "\x00" in wanted:
        return None  # nobody is called so, and Postgres refuses the question
    # A name cannot hold an @, and an address always does: at most one row has both.
    return session.scalar(
        select(User).where(
            or_(User.username_key == wanted, User.email_key == wanted), User.kind != ERASED
        )
    )


def get_user(login: str, *, session: Session) -> User:
    """Return the user of this name or address, or raise NotFoundError."""
    user = find_user(login, session=session)
    if user is None:
        message = f"There is no user “{login}”."
        raise NotFoundError(message)
    return user


@dataclass(frozen=True, kw_only=True)
class Knock:
    """Somebody says who they are."""

    login: str
    password: str
    account_limit: AttemptLimit
    #: What many people share; their right answers clear nobody's count.
    address_limit: AttemptLimit
    cost: HashCost
    #: By account, of a browser in which it has signed in before: that one is counted alone, so that
    #: strangers who guess keep nobody out who is known.
    browser_limits: Mapping[int, AttemptLimit] = field(default_factory=dict)

    def limits_for(self, user: User | None) -> "KnockLimitsInForce":
        """Return what is counted if it is this account that somebody knocks at."""
        known = self.browser_limits.get(user.id) if user else None
        if known is not None:
            return KnockLimitsInForce(own=known, shared=None)
        # By account, not by what was typed: its name and its address are one account.
        subject = _subject(user.username if user else self.login)
        account_limit = replace(self.account_limit, subject=subject)
        return KnockLimitsInForce(own=account_limit, shared=self.address_limit)


@dataclass(frozen=True, kw_only=True)
class KnockLimitsInForce:
    """What is counted when somebody says who they are."""

    #: Begins anew with a right answer.
    own: AttemptLimit
    #: Gets that one answer back.
    shared: AttemptLimit | None

    def claim(self, *, session: Session, keyring: Keyring, now: datetime) -> None:
        """Count an attempt, or raise TooManyAttemptsError."""
        for limit in (self.own, self.shared):
            if limit is not None:
                claim_attempt(limit, session=session, keyring=keyring, now=now)

    def clear(self, *, session: Session, keyring: Keyring) -> None:
        """Take a right answer back from what is counted."""
        forget_attempts(self.own, session=session, keyring=keyring)
        if self.shared is not None:
            give_back_attempt(self.shared, session=session, keyring=keyring)


def authenticate(knock: Knock, *, session: Session, keyring: Keyring, now: datetime) -> User | None:
    """Return the active user whose password this is, or None; raise TooManyAttemptsError.

    A wrong name, a wrong password and a locked account look alike, in words and in time. Whether
    the account wants more than a password is the caller's to ask.
    """
    return _let_in(knock, _is_entrant, session=session, keyring=keyring, now=now)


def authenticate_by_password_alone(
    knock: Knock, *, session: Session, keyring: Keyring, now: datetime
) -> User | None:
    """Return the same where no further step can follow, or raise TooManyAttemptsError.

    The right password of an account that wants more is refused like a wrong one. It is counted
    like one, too: otherwise the count would tell that it was right.
    """

    def is_enough(user: User | None) -> bool:
        # Asked for a name that nobody has, too: the answer takes as long.
        wants_more = has_second_factor(user.id if user else 0, session=session)
        return _is_entrant(user) and not wants_more and not (user and user.must_change_password)

    return _let_in(knock, is_enough, session=session, keyring=keyring, now=now)


def _let_in(
    knock: Knock,
    is_enough: Callable[[User | None], bool],
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> User | None:
    user = find_user(knock.login, session=session)
    limits = knock.limits_for(user)
    limits.claim(session=session, keyring=keyring, now=now)
    # Asked before the password is looked at: the answer takes as long whatever that is.
    is_welcome = is_enough(user)
    known_hash = user.password_hash if user else None
    seen = (user.id, user.password_changed_at) if user else None
    release_locks(session)
    verdict = check_password(knock.password, known_hash, knock.cost)
    if not (user and seen and known_hash and is_welcome and verdict.is_right):
        return None
    new_hash = known_hash
    if verdict.is_hash_outdated:
        new_hash = hash_password(knock.password, knock.cost)
    if not _is_still_the_password(*seen, session=session) or not is_enough(user):
        return None
    user.password_hash = new_hash
    limits.clear(session=session, keyring=keyring)
    return user


def _is_still_the_password(user_id: int, changed_at: datetime | None, *, session: Session) -> bool:
    """Tell whether nobody has changed the password while it was looked at.

    Its hash may be another one: two who come at once both make it anew.
    """
    found = session.get(User, user_id, populate_existing=True)
    return found is not None and found.password_changed_at == changed_at


def _is_entrant(user: User | None) -> bool:
    """Tell whether this account is one of a person, and active: bots have tokens and no more."""
    return user is not None and user.state == ACTIVE and user.kind == HUMAN


def find_entrant(user_id: int, *, session: Session) -> User | None:
    """Return the user of this number who may sign in now."""
    user = session.get(User, user_id)
    return user if _is_entrant(user) else None


def forget_failed_sign_ins(user: User, *, session: Session, keyring: Keyring) -> None:
    """Let somebody try again at once who had too many attempts."""
    limit = AttemptLimit(subject=_subject(user.username), attempts=0, window=timedelta(0))
    forget_attempts(limit, session=session, keyring=keyring)


def _subject(login: str) -> str:
    return f"sign-in account {fold(login.strip())}"


def change_password(
    user: User, new_password: str, *, session: Session, now: datetime, rules: PasswordRules
) -> None:
    """Give the user another password of their own, or raise InvalidError."""
    username, email = user.username, user.email
    release_locks(session)
    check_new_password(new_password, username=username, email=email, minimum=rules.minimum)
    user.password_hash = hash_password(new_password, rules.cost)
    user.password_changed_at = now
    user.must_change_password = False


@dataclass(frozen=True, kw_only=True)
class Profile:
    """How people and applications see somebody."""

    name: str
    email: str


def change_profile(
    user: User,
    wanted: Profile,
    *,
    guesses: AttemptLimit,
    session: Session,
    keyring: Keyring,
    now: datetime,
) -> None:
    """Give the user another display name and address, or raise ConflictError.

    `guesses` is how often they may meet an address that somebody else has: each time tells who
    has an account here. Raises TooManyAttemptsError for one too many.
    """
    check_name(wanted.name)
    normal = checked_email(wanted.email)
    if normal != user.email:
        claim_attempt(guesses, session=session, keyring=keyring, now=now)
    try:
        with session.begin_nested():
            user.name = wanted.name
            # As it was: who shares it since before that was refused may change the name alone.
            if normal != user.email:
                user.email = normal
    except IntegrityError as error:
        message = "Another user has this e-mail address."
        raise ConflictError(message, field="email") from error
    give_back_attempt(guesses, session=session, keyring=keyring)


def empty_account(user: User, *, pseudonym: str) -> None:
    """Leave nothing of an account but its number; nothing opens it any more.

    Neither name nor address can be anybody's: user names have no spaces, and nobody is reached
    below `.invalid` (RFC 2606 section 2).
    """
    user.username, user.name = pseudonym, "Deleted user"
    user.email = f"{user.id}@deleted.invalid"
    user.password_hash, user.must_change_password = "", False
    user.kind, user.state, user.is_admin = ERASED, "blocked", False
    user.last_sign_in_at = user.password_changed_at = None
