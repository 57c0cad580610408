"""Confirmation of email addresses, through a single-use link or by an administrator.

A new address is stored in `email_confirmations` until a recipient who is signed in as the user
confirms it. The current address is notified, and stays in use until then. If another account
already has the new address, the response is the same, and only the owner of the address is
informed.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.access.actions import action
from domain.access.actor import UnitOfWork
from domain.accounts.attempt_counters import consume_attempt
from domain.accounts.message_limits import CONFIRMATION_LIMIT, LimitedMessage, count_message
from domain.accounts.sign_in.actions import SignInLimits
from domain.accounts.users import ERASED, HUMAN, normalize_email
from domain.audit.events import EventKind
from domain.core.database.bulk_statements import (
    build_bulk_delete,
    build_bulk_update,
    build_session_insert,
)
from domain.core.errors import ConflictError, NotFoundError
from domain.core.keyring import CredentialType, Keyring
from domain.delivery.mail.outbox import MessageSettings, NewEmail, queue_emails
from models import EmailConfirmation, Mail, User
from models.case_folding import fold_text

#: Lifetime of a confirmation link.
CONFIRMATION_LINK_LIFETIME = timedelta(days=3)
#: Period in which an administrator can confirm an unconfirmed address.
UNCONFIRMED_ADDRESS_LIFETIME = timedelta(days=30)
_INVALID_LINK_MESSAGE = (
    "This link is not valid. It was already used or replaced by a newer link, has expired, or is "
    "for another account."
)
_TAKEN_MESSAGE = "Another user has this email address."


@dataclass(frozen=True, kw_only=True)
class AccountMessageBuilder(MessageSettings):
    """A builder of messages about accounts and their addresses."""

    #: True if a mail server is configured. Without a mail server, no messages are queued, and
    #: administrators confirm addresses.
    has_mail_server: bool

    def build_account_message(
        self, user_id: int, recipient: str, subject: str, text: str, *, secret: str
    ) -> NewEmail:
        """Return a message about an account.

        `secret` distinguishes the message from similar messages.
        """
        # The key does not reveal the secret.
        digest = self.keyring.compute_digest(f"{subject}\n{recipient}\n{secret}").hex()
        return self.build_address_message(
            f"{_format_message_key(user_id)}{digest}", recipient, subject, text
        )

    def build_address_message(self, key: str, recipient: str, subject: str, text: str) -> NewEmail:
        """Return a message to a recipient who might not have an account."""
        text = f"Hello,\n\n{text}\n\n-- \n{self.instance_name}, {self.base_url}\n"
        return NewEmail(key=key, recipient=recipient, subject=subject, text=text)


@dataclass(frozen=True, kw_only=True)
class UnconfirmedAddress:
    """An email address that has not been confirmed yet."""

    user_id: int
    username: str
    email: str
    #: True if the address will replace the current address of the account.
    is_new: bool
    asked_at: datetime

    @property
    def link_expires_at(self) -> datetime:
        """The time at which the link expires."""
        return self.asked_at + CONFIRMATION_LINK_LIFETIME


def request_address_change(work: UnitOfWork, user_id: int, email: str) -> None:
    """Store a user's new address until it is confirmed.

    A link is sent to the new address, and the current address is notified. Requests are limited,
    because each request sends a message to an arbitrary address. Raise TooManyAttemptsError if the
    limit is exceeded, and InvalidError for a malformed address.
    """
    normal = normalize_email(email)
    _count_confirmation_message(work, user_id, normal)
    user = work.session.get_one(User, user_id)
    writer = _MessageWriter(
        user, work.policy(AccountMessageBuilder), _store_unconfirmed_address(work, user, normal)
    )
    is_free = work.session.scalar(select_other_account(normal, user.id)) is None
    to_new = (
        writer.build_confirmation_message(normal)
        if is_free
        else writer.build_address_taken_message(normal)
    )
    writer.queue_messages(
        to_new, writer.build_request_message(normal), session=work.session, now=work.now
    )


@action("own_account.change")
def send_address_link(work: UnitOfWork) -> None:
    """Send a new link to the caller's unconfirmed email address.

    Raise TooManyAttemptsError for too many requests. Raise ConflictError if the address is already
    confirmed.
    """
    user = work.session.get_one(User, work.actor.id)
    waiting = find_unconfirmed_address(user.id, session=work.session)
    if waiting is not None and waiting.is_new:
        request_address_change(work, user.id, waiting.email)
        return
    if user.email_confirmed_at is not None:
        raise ConflictError("Your email address is already confirmed.")
    _count_confirmation_message(work, user.id, user.email)
    send_confirmation_link(work, user.id)


@action("own_account.change")
def discard_unconfirmed_address(work: UnitOfWork) -> bool:
    """Discard the caller's unconfirmed email address.

    Return whether an address was discarded.
    """
    return delete_unconfirmed_address(work.actor.id or 0, session=work.session)


def _count_confirmation_message(work: UnitOfWork, user_id: int, email: str) -> None:
    limit, keyring = work.policy(SignInLimits).build_email_limit(user_id), work.policy(Keyring)
    consume_attempt(limit, session=work.session, keyring=keyring, now=work.now)
    sending = LimitedMessage(recipient=email, sender_id=None)
    count_message(work, CONFIRMATION_LIMIT, sending)


def send_confirmation_link(work: UnitOfWork, user_id: int) -> None:
    """Send a confirmation link to an account's address.

    Nothing is sent if the address is confirmed or no mail server is configured.
    """
    user, letterhead = work.session.get_one(User, user_id), work.policy(AccountMessageBuilder)
    if user.email_confirmed_at is not None or not letterhead.has_mail_server:
        return
    writer = _MessageWriter(user, letterhead, _store_unconfirmed_address(work, user, user.email))
    writer.queue_messages(
        writer.build_confirmation_message(user.email), session=work.session, now=work.now
    )


def find_unconfirmed_address(user_id: int, *, session: Session) -> UnconfirmedAddress | None:
    """Return the unconfirmed address of a user, or None."""
    return _find_address(EmailConfirmation.user_id == user_id, session=session)


def get_unconfirmed_address(
    token: str, user_id: int, *, session: Session, keyring: Keyring, now: datetime
) -> UnconfirmedAddress:
    """Return the address that a link confirms for this user.

    Raise NotFoundError if the link is not valid.
    """
    found = _find_address(_matches_link(token, user_id, keyring=keyring, now=now), session=session)
    if found is None:
        raise NotFoundError(_INVALID_LINK_MESSAGE)
    return found


@action("own_account.change")
def confirm_address_by_link(work: UnitOfWork, token: str) -> UnconfirmedAddress:
    """Confirm the email address that a single-use link was sent to.

    If the address replaces another address, the previous address is notified. Raise NotFoundError
    if the link is not valid. Raise ConflictError if another user has taken the address in the
    meantime.
    """
    user_id, keyring = work.actor.id or 0, work.policy(Keyring)
    waiting = get_unconfirmed_address(
        token, user_id, session=work.session, keyring=keyring, now=work.now
    )
    return _confirm_address(
        work, waiting, _matches_link(token, user_id, keyring=keyring, now=work.now)
    )


@action("users.change")
def confirm_address_as_administrator(
    work: UnitOfWork, user_id: int, email: str
) -> UnconfirmedAddress:
    """Confirm an unconfirmed email address as an administrator.

    Raise ConflictError if the address is no longer waiting for confirmation, or if another user has
    taken it in the meantime.
    """
    mine = (EmailConfirmation.user_id == user_id) & (EmailConfirmation.email == email)
    waiting = _find_address(mine, session=work.session)
    if waiting is None:
        raise ConflictError("This address is no longer waiting for confirmation.")
    return _confirm_address(work, waiting, mine)


def confirm_current_address(work: UnitOfWork, user_id: int) -> bool:
    """Confirm an account's address as an administrator.

    Return whether the address was unconfirmed. Raise ConflictError for a bot, and for an address
    that an older account also has.
    """
    user = work.session.get_one(User, user_id)
    if user.kind != HUMAN:
        raise ConflictError("Bots have no email address to confirm.")
    if user.email_key is None:
        raise ConflictError(_TAKEN_MESSAGE, field="email")
    if user.email_confirmed_at is not None:
        return False
    user.email_confirmed_at = work.now
    delete_unconfirmed_address(user_id, email=user.email, session=work.session)
    return True


@action("users.change")
def confirm_all_addresses(work: UnitOfWork) -> int:
    """Confirm the email addresses of all accounts as an administrator.

    Return the number of confirmed addresses.
    """
    gone = build_bulk_delete(EmailConfirmation).where(
        EmailConfirmation.email
        == select(User.email).where(User.id == EmailConfirmation.user_id).scalar_subquery()
    )
    work.session.execute(gone)
    confirmed = work.session.scalars(
        build_bulk_update(User)
        .where(IS_UNCONFIRMED)
        .values(email_confirmed_at=work.now)
        .returning(User.id)
    )
    done = len(confirmed.all())
    if done:
        work.record_audit_event(EventKind.EMAIL_CONFIRMED, details={"accounts": done})
    return done


#: SQL condition for people whose current address an administrator can confirm.
IS_UNCONFIRMED = (
    (User.kind == HUMAN) & User.email_confirmed_at.is_(None) & User.email_key.is_not(None)
)


def delete_unconfirmed_address(user_id: int, *, session: Session, email: str | None = None) -> bool:
    """Discard the unconfirmed address of a user, and return whether it was discarded.

    If `email` is given, only that address is discarded.
    """
    mine = EmailConfirmation.user_id == user_id
    if email is not None:
        mine &= EmailConfirmation.email == email
    gone = session.scalars(
        build_bulk_delete(EmailConfirmation).where(mine).returning(EmailConfirmation.user_id)
    )
    return gone.first() is not None


def cancel_address_change(user_id: int, *, session: Session) -> None:
    """Discard a user's requested new address, for example after a password change.

    An unconfirmed current address is kept.
    """
    waiting = find_unconfirmed_address(user_id, session=session)
    if waiting is not None and waiting.is_new:
        delete_unconfirmed_address(user_id, session=session)


def notify_previous_address(work: UnitOfWork, user_id: int, former_address: str) -> None:
    """Notify the previous address of an account that it was replaced."""
    user = work.session.get_one(User, user_id)
    writer = _MessageWriter(user, work.policy(AccountMessageBuilder), work.now.isoformat())
    writer.queue_messages(
        writer.build_change_message(former_address), session=work.session, now=work.now
    )


def delete_address_messages(user_id: int, *, session: Session) -> None:
    """Delete the messages about a user's addresses, regardless of their recipients."""
    theirs = Mail.key.startswith(_format_message_key(user_id))
    session.execute(build_bulk_delete(Mail).where(theirs))


def _confirm_address(
    work: UnitOfWork, unconfirmed_address: UnconfirmedAddress, mine: ColumnElement[bool]
) -> UnconfirmedAddress:
    session = work.session
    gone = build_bulk_delete(EmailConfirmation).where(mine).returning(EmailConfirmation.user_id)
    # Of two concurrent requests, only one finds the row.
    if session.scalar(gone) is None:
        raise NotFoundError(_INVALID_LINK_MESSAGE)
    user = session.get_one(User, unconfirmed_address.user_id, populate_existing=True)
    former = user.email
    try:
        with session.begin_nested():
            user.email, user.email_confirmed_at = unconfirmed_address.email, work.now
    except IntegrityError as error:
        raise ConflictError(_TAKEN_MESSAGE, field="email") from error
    if user.email != former:
        notify_previous_address(work, user.id, former)
    details = {"changed": "email address"} if unconfirmed_address.is_new else {}
    work.record_audit_event(
        EventKind.EMAIL_CONFIRMED, subject=user.username, user_id=user.id, details=details
    )
    return unconfirmed_address


def _find_address(condition: ColumnElement[bool], *, session: Session) -> UnconfirmedAddress | None:
    row = session.execute(
        select(
            EmailConfirmation.email,
            EmailConfirmation.created_at,
            User.id,
            User.username,
            User.email,
        )
        .join(User, User.id == EmailConfirmation.user_id)
        .where(condition, User.kind != ERASED)
    ).first()
    if row is None:
        return None
    email, asked_at, user_id, username, present = row
    return UnconfirmedAddress(
        user_id=user_id,
        username=username,
        email=email,
        is_new=email != present,
        asked_at=asked_at,
    )


def _matches_link(
    token: str, user_id: int, *, keyring: Keyring, now: datetime
) -> ColumnElement[bool]:
    digests = keyring.compute_digests(token, CredentialType.EMAIL_CONFIRMATION)
    return (
        EmailConfirmation.token_digest.in_(digests)
        & (EmailConfirmation.user_id == user_id)
        & (EmailConfirmation.created_at > now - CONFIRMATION_LINK_LIFETIME)
    )


def select_other_account(email: str, user_id: int) -> Select[int]:
    """Return a query for an account other than `user_id` that has this address."""
    same = or_(User.email_key == fold_text(email), func.lower(User.email) == email.lower())
    return select(User.id).where(same, User.id != user_id).limit(1)


def _store_unconfirmed_address(work: UnitOfWork, user: User, email: str) -> str:
    """Store an unconfirmed address, and return the secret of its link.

    Any earlier unconfirmed address is replaced.
    """
    token = work.policy(Keyring).issue_credential(CredentialType.EMAIL_CONFIRMATION)
    values = {"email": email, "token_digest": token.digest, "created_at": work.now}
    insert = build_session_insert(EmailConfirmation, session=work.session).values(
        user_id=user.id, **values
    )
    work.session.execute(
        insert.on_conflict_do_update(index_elements=[EmailConfirmation.user_id], set_=values)
    )
    return token.clear


def _format_message_key(user_id: int) -> str:
    return f"address of user {user_id}: "


@dataclass(frozen=True)
class _MessageWriter:
    """Builds and queues messages about one change of a user's address.

    The messages contain the username, because a display name could contain arbitrary text.
    """

    user: User
    letterhead: AccountMessageBuilder
    #: Secret in the link, or a string that distinguishes the change from the user's other changes.
    token: str

    def build_confirmation_message(self, email: str) -> NewEmail:
        """Return the message that asks the recipient to confirm an address."""
        return self._build_message(
            email,
            f"Confirm your email address at {self.letterhead.instance_name}",
            f"To confirm that this is the email address of @{self.user.username}, sign in to that "
            f"account and open this link within {CONFIRMATION_LINK_LIFETIME.days} days:\n"
            f"{self.letterhead.base_url}/-/email_confirmations/{self.token}\n\n"
            "If you do not know this account, ignore this message.",
        )

    def build_address_taken_message(self, email: str) -> NewEmail:
        """Return the message to an address that another account already has."""
        return self._build_message(
            email,
            f"Your email address at {self.letterhead.instance_name}",
            f"The user @{self.user.username} wants to use this email address. It already belongs "
            "to another account, so nothing was changed.\n\nIf the other account is yours, sign "
            "in with it. If both accounts are yours, ask an administrator which one to keep. "
            "Otherwise, ignore this message.",
        )

    def build_request_message(self, email: str) -> NewEmail:
        """Return the message that informs the current address about the requested new address."""
        return self._build_message(
            self.user.email,
            f"New email address for your account at {self.letterhead.instance_name}",
            f"Someone who is signed in as @{self.user.username} asked to change the email "
            f"address of this account to {email}. It changes when the new address is confirmed."
            "\n\nIf this was not you, change your password now. This also cancels the change:\n"
            f"{self.letterhead.base_url}/-/user_settings/security",
        )

    def build_change_message(self, former_address: str) -> NewEmail:
        """Return the message that informs the previous address about the change."""
        return self._build_message(
            former_address,
            f"Your email address at {self.letterhead.instance_name} was changed",
            f"The email address of @{self.user.username} was changed from this address to "
            f"{self.user.email}.\n\nIf this was not you, contact an administrator immediately.",
        )

    def queue_messages(self, *messages: NewEmail, session: Session, now: datetime) -> None:
        """Queue messages if a mail server is configured."""
        if self.letterhead.has_mail_server:
            queue_emails(messages, session=session, keyring=self.letterhead.keyring, now=now)

    def _build_message(self, recipient: str, subject: str, text: str) -> NewEmail:
        return self.letterhead.build_account_message(
            self.user.id, recipient, subject, text, secret=self.token
        )
