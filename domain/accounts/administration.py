"""Account operations for administrators, on pages and on the command line.

`by` is the account id of the acting administrator; None stands for the command line.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.passwords import HashCost, PasswordRules, hash_password
from domain.accounts.signing_in.sessions import close_all_sign_ins
from domain.accounts.users import (
    ACTIVE,
    BOT,
    ERASED,
    HUMAN,
    NewUser,
    create_user,
    forget_failed_sign_ins,
)
from domain.database.locks import release_locks
from domain.database.paging import LARGEST_ID
from domain.errors import ConflictError, NotFoundError
from domain.keyring import Keyring
from domain.randomness import random_password
from models import User

LOCKED = "locked"
#: The ORM row that `get_account` returns; views only pass it back to this module.
UserRow = User


@dataclass(frozen=True, kw_only=True)
class AccountDetails:
    """The fields of a new account."""

    username: str
    email: str
    #: Display name; the user name if empty.
    name: str = ""
    is_admin: bool = False


@dataclass(frozen=True, kw_only=True)
class NewAccount:
    """A new account and its generated password, which is not stored in clear."""

    user: User
    password: str = field(repr=False)


def get_account(user_id: int, *, session: Session) -> User:
    """Return an account; raise NotFoundError if it does not exist or was erased."""
    found = session.get(User, user_id) if user_id <= LARGEST_ID else None
    if found is None or found.kind == ERASED:
        message = "There is no such user."
        raise NotFoundError(message)
    return found


def generate_password(username: str) -> str:
    """Return a random password that does not contain the user name."""
    while username.lower() in (password := random_password()):
        pass
    return password


def create_account(
    details: AccountDetails, *, session: Session, now: datetime, rules: PasswordRules
) -> NewAccount:
    """Create an account with a random password that has to be changed at the first sign-in.

    Raises InvalidError or ConflictError with the name of the field.
    """
    password = generate_password(details.username)
    new = NewUser(
        username=details.username,
        email=details.email,
        name=details.name,
        password=password,
        is_admin=details.is_admin,
    )
    rules_for_made_up = replace(rules, minimum=len(password))
    user = create_user(new, session=session, now=now, rules=rules_for_made_up)
    user.must_change_password = True
    return NewAccount(user=user, password=password)


def lock(user: User, *, by: int | None, session: Session) -> None:
    """Lock an account and sign it out everywhere; its password and its tokens stop working.

    Raises ConflictError for the acting account itself and for the last administrator.
    """
    _refuse_oneself(user, by, "You cannot lock your own account; another administrator can.")
    _keep_an_administrator(user, session=session)
    user.state = LOCKED
    close_all_sign_ins(user.id, session=session)


def unlock(user: User, *, session: Session, keyring: Keyring) -> None:
    """Unlock an account and reset its count of failed sign-in attempts."""
    user.state = ACTIVE
    forget_failed_sign_ins(user, session=session, keyring=keyring)


def reset_password(
    user: User, *, by: int | None, cost: HashCost, session: Session, keyring: Keyring, now: datetime
) -> str:
    """Give an account a random password, sign it out everywhere, and return the password.

    It has to be changed at the next sign-in. Raises ConflictError for the acting account itself and
    for bots.
    """
    _refuse_oneself(user, by, "Change your own password in your settings.")
    _refuse_bot(user)
    password = generate_password(user.username)
    release_locks(session)
    password_hash = hash_password(password, cost)
    user.password_hash = password_hash
    user.password_changed_at = now
    user.must_change_password = True
    forget_failed_sign_ins(user, session=session, keyring=keyring)
    close_all_sign_ins(user.id, session=session)
    return password


def make_administrator(user: User) -> None:
    """Make a user an administrator of the instance; raise ConflictError for bots."""
    _refuse_bot(user)
    user.is_admin = True


def unmake_administrator(user: User, *, by: int | None, session: Session) -> None:
    """Revoke the administrator role; raise ConflictError for oneself and the last administrator."""
    _refuse_oneself(user, by, "Another administrator has to take this from you.")
    _keep_an_administrator(user, session=session)
    user.is_admin = False


def check_erasable(user: User, *, by: int | None, session: Session) -> None:
    """Raise ConflictError if the account is one's own, a bot, or the last administrator."""
    _refuse_oneself(user, by, "You cannot delete your own account; another administrator can.")
    if user.kind == BOT:
        message = "This is the bot of an access token: revoke the token instead."
        raise ConflictError(message)
    _keep_an_administrator(user, session=session)


def _refuse_oneself(user: User, by: int | None, sentence: str) -> None:
    if user.id == by:
        raise ConflictError(sentence)


def _refuse_bot(user: User) -> None:
    if user.kind == BOT:
        message = "This is the bot of an access token: it has no password and administers nothing."
        raise ConflictError(message)


def _keep_an_administrator(user: User, *, session: Session) -> None:
    """Raise ConflictError if no other active administrator is left; concurrent calls serialize."""
    administrators = session.scalars(
        select(User.id)
        .where(User.is_admin, User.state == ACTIVE, User.kind == HUMAN)
        .order_by(User.id)
        # KEY SHARE: inserting a row that refers to the user, such as a sign-in, does not wait.
        .with_for_update(key_share=True)
    ).all()
    if list(administrators) == [user.id]:
        message = "This is the last administrator who can sign in; make another one first."
        raise ConflictError(message)
