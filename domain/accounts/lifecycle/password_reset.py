"""Password resets through a link sent to the account's email address.

A link is signed, but not stored, and works once. It contains a digest of the password hash and the
address, so a change to either of them invalidates the link. The response does not reveal whether an
account exists: only the recipient of the email learns that. Second factors are kept, and are
required at the next sign-in.
"""

from datetime import timedelta
from hashlib import sha256

from domain.access.actions import action, read_action
from domain.access.actor import LinkSigner, UnitOfWork
from domain.accounts.attempt_counters import consume_attempt
from domain.accounts.email_addresses import AccountMessageBuilder, confirm_current_address
from domain.accounts.lifecycle.own_account import revoke_access
from domain.accounts.passwords import PasswordRules, delete_initial_password_file
from domain.accounts.sign_in.actions import SignInLimits
from domain.accounts.sign_in.sessions import close_all_sign_ins
from domain.accounts.types import PasswordBody
from domain.accounts.users import (
    UserView,
    find_sign_in_user,
    find_user,
    hash_new_password,
    lock_account_row,
    reset_failed_sign_ins,
    store_password,
)
from domain.audit.events import EventKind
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import ConflictError, NotFoundError, TooManyAttemptsError
from domain.core.keyring import Keyring
from domain.delivery.mail.outbox import queue_emails
from models import User

RESET_LINK_LIFETIME = timedelta(hours=1)
#: Purpose in the signature of the links, which prevents other kinds of links from being accepted.
RESET_LINK_PURPOSE = "forgotten password"
_INVALID_LINK_MESSAGE = (
    "This link is not valid. It was already used, has expired, or the account has changed. Request "
    "a new link."
)


@action("signing_in.prove")
def send_reset_link(work: UnitOfWork, login: str) -> None:
    """Send a link to the account with this username or email address.

    Nothing is sent if there is no such account. Raise ConflictError if this instance sends no
    email. Raise TooManyAttemptsError for too many requests from one IP address. Requests above the
    limit for one account are ignored, so that its owner is not flooded with email.
    """
    if not work.policy(AccountMessageBuilder).has_mail_server:
        raise ConflictError("This instance does not send emails.")
    limits = work.policy(SignInLimits)
    session, keyring = work.session, work.policy(Keyring)
    from_address = limits.build_address_limit(work.actor.source.address)
    consume_attempt(from_address, session=session, keyring=keyring, now=work.now)
    user = find_user(login, session=session)
    if user is None or find_sign_in_user(user.id, session=session) is None:
        return
    try:
        to_account = limits.build_email_limit(user.id)
        consume_attempt(to_account, session=session, keyring=keyring, now=work.now)
    except TooManyAttemptsError:
        return
    _queue_reset_link(work, user)
    work.record_audit_event(EventKind.PASSWORD_LINK_SENT, subject=user.username, user_id=user.id)


@read_action("signing_in.prove")
def get_account_for_reset_link(work: UnitOfWork, user_id: int, stamp: str) -> UserView:
    """Return the account for a password reset link.

    Raise NotFoundError if the link is not valid.
    """
    user = find_sign_in_user(user_id, session=work.session)
    if user is None or _compute_account_stamp(work.session.get_one(User, user_id)) != stamp:
        raise NotFoundError(_INVALID_LINK_MESSAGE)
    return user


@action("signing_in.prove")
def set_password_by_link(work: UnitOfWork, user_id: int, stamp: str, new: PasswordBody) -> None:
    """Set a new password for a reset link's account, and sign the account out everywhere.

    Failed sign-in attempts are reset, and the address is confirmed. Raise NotFoundError if the link
    is not valid, and InvalidError for a weak password.
    """
    user, session = get_account_for_reset_link(work, user_id, stamp), work.session
    commit_to_release_locks(session)  # Hashing a password takes time.
    hashed = hash_new_password(user, new.new_password, work.policy(PasswordRules))
    lock_account_row(user_id, session=session)
    # The link is checked again: of two concurrent requests, the second finds the new password.
    get_account_for_reset_link(work, user_id, stamp)
    store_password(user_id, hashed, session=session, now=work.now)
    close_all_sign_ins(user_id, session=session)
    reset_failed_sign_ins(user.username, session=session, keyring=work.policy(Keyring))
    delete_initial_password_file(user.username, work.settings.instance_path)
    ended = revoke_access(
        work, user_id, applications=new.end_applications, tokens=new.revoke_tokens
    )
    subject = user.username
    work.record_audit_event(
        EventKind.PASSWORD_CHANGED, subject=subject, user_id=user_id, details=ended
    )
    # An address that another account shares proves nothing about the ownership of either account.
    if user.is_found_by_email and confirm_current_address(work, user_id):
        work.record_audit_event(EventKind.EMAIL_CONFIRMED, subject=subject, user_id=user_id)


def _queue_reset_link(work: UnitOfWork, user: UserView) -> None:
    letterhead = work.policy(AccountMessageBuilder)
    stamp = _compute_account_stamp(work.session.get_one(User, user.id))
    sealed = work.policy(LinkSigner).sign([user.id, stamp], RESET_LINK_PURPOSE)
    message = letterhead.build_account_message(
        user.id,
        user.email,
        f"Reset your password at {letterhead.instance_name}",
        f"Someone requested a new password for @{user.username}, from the IP address "
        f"{work.actor.source.address}. To choose a new password, open this link within an hour:\n"
        f"{letterhead.base_url}/users/password/{sealed}\n\n"
        "The link works once. If this was not you, ignore this message. Your password stays the "
        "same.",
        secret=f"{sealed} {work.now.isoformat()}",
    )
    queue_emails((message,), session=work.session, keyring=work.policy(Keyring), now=work.now)


def _compute_account_stamp(user: User) -> str:
    """Return a digest that changes with the password or the address, and reveals neither."""
    return sha256(f"{user.password_hash}\n{user.email}".encode()).hexdigest()
