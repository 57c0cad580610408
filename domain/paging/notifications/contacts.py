"""Contacts of users, and channels of projects and groups.

Addresses are stored encrypted, since they may contain credentials. Web pages show addresses without
credentials. Other modules send the messages.
"""

import hmac
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.access.authorizations import has_live_access, lock_authorization
from domain.accounts.message_limits import CONTACT_MESSAGE_LIMIT, LimitedMessage, count_message
from domain.core.database.bulk_statements import build_bulk_update
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.keyring import Keyring, UndecryptableError
from domain.core.randomness import generate_random_letters
from domain.core.types.base import Resource, Time, build_choices_schema, get_column_values
from domain.paging.notifications.contact_types.base import ContactAddress, ContactType
from domain.paging.notifications.contact_types.registry import (
    CONTACT_TYPE_NAMES,
    CONTACT_TYPES,
    get_contact_type,
)
from domain.paging.notifications.delivery_status import delete_waiting_messages
from domain.paging.notifications.message_queue import MessageKind, queue_message
from models import Contact as ContactRow

#: Maximum number of contacts for an owner. Each page may be sent to all contacts.
MAX_CONTACTS = 20
_MAX_LABEL_LENGTH = 100
_MAX_SHOWN_ADDRESS_LENGTH = 255
_CODE_LIFETIME = timedelta(minutes=15)
_CODE_DIGITS = 6
_MAX_CODE_GUESSES = 5


class ContactState(StrEnum):
    """The state of a contact. The value is shown to users."""

    UNCONFIRMED = "unconfirmed"
    READY = "ready"
    FAILING = "failing"
    #: State of a device whose push subscription has ended.
    EXPIRED = "expired"


class CodeState(StrEnum):
    """The state of the last confirmation code for an unconfirmed contact."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


class Contact(Resource):
    """A contact of a user, or a channel of a project or group."""

    id: int
    type: Annotated[str, build_choices_schema(*CONTACT_TYPE_NAMES)]
    label: str
    address: str = Field(description="Address of the contact, without its secrets.")
    state: ContactState
    created_at: Time
    confirmed_at: Time | None
    last_sent_at: Time | None
    failing_since: Time | None
    last_error: str | None
    user_id: int | None = Field(exclude=True)
    project_id: int | None = Field(exclude=True)
    group_id: int | None = Field(exclude=True)
    #: Number of failed attempts since the last success.
    tries: int = Field(exclude=True)
    #: True if the contact is the account's own email address, which is used as a fallback.
    is_account_email: bool = Field(exclude=True)
    code_state: CodeState | None = Field(exclude=True)


@dataclass(frozen=True, kw_only=True)
class ContactOwner:
    """The user, project or group that owns a contact."""

    user_id: int | None = None
    project_id: int | None = None
    group_id: int | None = None


def build_contact(row: ContactRow) -> Contact:
    """Build a contact from a database row."""
    if row.confirmed_at is None:
        is_entered = get_contact_type(row.type).is_entered
        state = ContactState.UNCONFIRMED if is_entered else ContactState.EXPIRED
    else:
        state = ContactState.FAILING if row.failing_since else ContactState.READY
    return Contact(
        **get_column_values(row, Contact),
        address=row.shown_address,
        state=state,
        is_account_email=row.address_ciphertext is None,
        code_state=_find_code_state(row),
    )


def _find_code_state(row: ContactRow) -> CodeState | None:
    """Return the state of the last confirmation code, or None if the contact needs no code."""
    if row.confirmed_at is not None or row.code_expires_at is None:
        return None
    queued_at = row.code_expires_at - _CODE_LIFETIME
    if row.last_sent_at is not None and row.last_sent_at >= queued_at:
        return CodeState.SENT
    has_failed = row.last_failed_at is not None and row.last_failed_at >= queued_at
    return CodeState.FAILED if has_failed else CodeState.WAITING


@dataclass(frozen=True, kw_only=True)
class NewContact:
    """The fields of a contact to create. The label may be empty."""

    owner: ContactOwner
    address: ContactAddress
    label: str = ""
    #: True if the contact needs no confirmation: a channel, or a contact created by an
    #: administrator.
    is_confirmed: bool = False
    #: ID of the authorization of the application that creates the contact.
    authorization_id: int | None = None


def create_contact(
    new_contact: NewContact, *, session: Session, keyring: Keyring, now: datetime
) -> Contact:
    """Create a contact.

    Raise InvalidError if the label is too long or the limit is reached. Raise ConflictError if the
    owner already has a contact with this address.
    """
    others = _list_contact_rows(new_contact.owner, session=session)
    if len(others) >= MAX_CONTACTS:
        things = "channels" if new_contact.owner.user_id is None else "contacts"
        message = f"You can have at most {MAX_CONTACTS} {things}. Delete one first."
        raise InvalidError(message, field="address")
    _check_address_is_new(new_contact.address, others, keyring)
    row = ContactRow(
        **vars(new_contact.owner),
        type=new_contact.address.type.name,
        label=_normalize_label(new_contact.label, new_contact.address.shown),
        address_ciphertext=keyring.encrypt(new_contact.address.clear),
        shown_address=new_contact.address.shown[:_MAX_SHOWN_ADDRESS_LENGTH],
        lane=new_contact.address.lane,
        created_at=now,
        confirmed_at=now if new_contact.is_confirmed else None,
        authorization_id=new_contact.authorization_id,
        code_tries=0,
        claim=0,
        tries=0,
    )
    session.add(row)
    session.flush()  # The flush assigns the ID.
    return build_contact(row)


def change_contact(
    work: UnitOfWork,
    contact_id: int,
    owner: ContactOwner,
    *,
    address: ContactAddress | None,
    label: str | None,
    is_confirmed: bool,
) -> Contact:
    """Change the address or the label of a contact.

    If `address` or `label` is None, the current value is kept. If the address changes, the queued
    messages are deleted unless the contact stays confirmed. Raise InvalidError for a label that is
    too long. Raise ConflictError if the owner already has a contact with this address.
    """
    session, keyring, now = work.session, work.policy(Keyring), work.now
    authorization_id = None if owner.user_id is None else lock_authorization(work)
    row = _lock_contact_row(contact_id, owner, session=session)
    _check_not_account_email(row)
    kept_label = "" if row.label == row.shown_address else row.label
    if address is not None and not _has_address(row, address, keyring):
        _check_address_is_new(address, _list_contact_rows(owner, session=session), keyring)
        replace_address(row, address, keyring=keyring, now=now)
        # Pages show responses of the new service only after it has accepted a message.
        row.last_sent_at = None
        row.authorization_id = authorization_id
        if not is_confirmed:
            row.confirmed_at = row.code_ciphertext = row.code_expires_at = None
            delete_waiting_messages(row, session=session, now=now)
    row.label = _normalize_label(kept_label if label is None else label, row.shown_address)
    session.flush()
    return build_contact(row)


def replace_address(
    row: ContactRow, address: ContactAddress, *, keyring: Keyring, now: datetime
) -> None:
    """Change the address of a locked contact, and reset its failures if the address differs."""
    if _has_address(row, address, keyring):
        return
    # A worker that is sending a message to the old address must lose its claim.
    row.claim, row.claimed_until = row.claim + 1, None
    row.address_ciphertext = keyring.encrypt(address.clear)
    row.shown_address = address.shown[:_MAX_SHOWN_ADDRESS_LENGTH]
    row.lane = address.lane
    row.tries, row.failing_since, row.last_failed_at, row.last_error = 0, None, None, None
    # Retry failed messages immediately, because the new address may work.
    row.next_try_at = row.next_try_at and min(row.next_try_at, now)


def _normalize_label(label: str, shown_address: str) -> str:
    """Return a label without extra spaces, or the shown address in place of an empty label."""
    label = " ".join(label.split()) or shown_address[:_MAX_LABEL_LENGTH]
    if len(label) > _MAX_LABEL_LENGTH:
        raise InvalidError(
            f"A label can have at most {_MAX_LABEL_LENGTH} characters.", field="label"
        )
    return label


def _check_address_is_new(
    address: ContactAddress, others: Iterable[ContactRow], keyring: Keyring
) -> None:
    if any(_has_address(row, address, keyring) for row in others):
        raise ConflictError("This address has already been added.", field="address")


def _check_not_account_email(row: ContactRow) -> None:
    if row.address_ciphertext is None:
        message = (
            "Your account's email address cannot be changed or deleted here. Add another contact "
            "instead."
        )
        raise InvalidError(message, field="contact")


def _has_address(row: ContactRow, address: ContactAddress, keyring: Keyring) -> bool:
    if row.type != address.type.name or row.address_ciphertext is None:
        return False
    try:
        return keyring.decrypt(row.address_ciphertext) == address.clear
    except UndecryptableError:
        return False


def list_contacts(owner: ContactOwner, *, session: Session) -> Sequence[Contact]:
    """Return the contacts of a user, or the channels of a project or group, oldest first."""
    return [build_contact(row) for row in _list_contact_rows(owner, session=session)]


def list_group_channels(groups: Collection[int], *, session: Session) -> Sequence[Contact]:
    """Return the channels of groups, oldest first."""
    of_groups = select(ContactRow).where(ContactRow.group_id.in_(groups)).order_by(ContactRow.id)
    return [build_contact(row) for row in session.scalars(of_groups)]


def list_types_in_use(*, session: Session) -> Sequence[ContactType]:
    """Return the contact types with at least one contact."""
    return [
        each
        for each in CONTACT_TYPES
        if session.scalar(select(ContactRow.id).where(ContactRow.type == each.name).limit(1))
        is not None
    ]


def get_contact_address(contact_id: int, *, session: Session, keyring: Keyring) -> str:
    """Return a contact's address with its secrets, or an empty string if decryption fails.

    Raise InvalidError if the contact is the email address of the account.
    """
    row = session.get_one(ContactRow, contact_id)
    _check_not_account_email(row)
    try:
        return keyring.decrypt(row.address_ciphertext or "")
    except UndecryptableError:
        return ""


def get_contact(contact_id: int, owner: ContactOwner, *, session: Session) -> Contact:
    """Return the contact with the given ID, which must belong to the given owner.

    Raise NotFoundError if there is no such contact.
    """
    return build_contact(get_contact_row(contact_id, owner, session=session))


def delete_contact(
    contact_id: int, owner: ContactOwner, *, session: Session, now: datetime
) -> Contact:
    """Delete a contact with its queued messages, and return the deleted contact.

    Raise NotFoundError if there is no such contact, or InvalidError if the contact is the email
    address of the account.
    """
    row = get_contact_row(contact_id, owner, session=session)
    _check_not_account_email(row)
    view = build_contact(row)
    delete_waiting_messages(row, session=session, now=now)
    session.delete(row)
    session.flush()
    return view


def get_contact_row(contact_id: int, owner: ContactOwner, *, session: Session) -> ContactRow:
    """Return the database row of an owner's contact.

    Raise NotFoundError if there is no such contact.
    """
    row = session.scalar(
        select(ContactRow).where(ContactRow.id == contact_id, *_is_owned_by(owner))
    )
    if row is None:
        raise NotFoundError("Channel not found." if owner.user_id is None else "Contact not found.")
    return row


def _lock_contact_row(contact_id: int, owner: ContactOwner, *, session: Session) -> ContactRow:
    get_contact_row(contact_id, owner, session=session)
    locked = select(ContactRow).where(ContactRow.id == contact_id).with_for_update()
    return session.scalars(locked).one()


def _list_contact_rows(owner: ContactOwner, *, session: Session) -> Sequence[ContactRow]:
    return session.scalars(
        select(ContactRow).where(*_is_owned_by(owner)).order_by(ContactRow.id)
    ).all()


def _is_owned_by(owner: ContactOwner) -> tuple[ColumnElement[bool], ...]:
    if owner.user_id is not None:
        return (ContactRow.user_id == owner.user_id,)
    if owner.group_id is not None:
        return (ContactRow.group_id == owner.group_id,)
    return (ContactRow.project_id == owner.project_id,)


def send_code(work: UnitOfWork, contact_id: int, owner: ContactOwner) -> int:
    """Send a new code to an unconfirmed contact, and return the ID of the message.

    Raise NotFoundError if there is no such contact, or InvalidError if it is already confirmed.
    """
    row = get_contact_row(contact_id, owner, session=work.session)
    if row.confirmed_at is not None:
        raise InvalidError("This contact is already confirmed.", field="code")
    if not get_contact_type(row.type).is_entered:
        message = "Turn on notifications again in the browser of this device."
        raise InvalidError(message, field="contact")
    _enforce_contact_message_limit(work, row, owner)
    code = generate_random_letters("0123456789", _CODE_DIGITS)
    row.code_ciphertext = work.policy(Keyring).encrypt(code)
    row.code_expires_at, row.code_tries = work.now + _CODE_LIFETIME, 0
    return queue_message(row.id, MessageKind.CODE, session=work.session, now=work.now)


def send_test(work: UnitOfWork, contact_id: int, owner: ContactOwner) -> int:
    """Send a test message to a confirmed contact, and return the ID of the message.

    Raise NotFoundError if there is no such contact, or InvalidError if it is not confirmed.
    """
    row = get_contact_row(contact_id, owner, session=work.session)
    if row.confirmed_at is None:
        message = "Confirm the contact first. Until then, only confirmation codes are sent to it."
        raise InvalidError(message, field="contact")
    _enforce_contact_message_limit(work, row, owner)
    return queue_message(row.id, MessageKind.TEST, session=work.session, now=work.now)


def _enforce_contact_message_limit(work: UnitOfWork, row: ContactRow, owner: ContactOwner) -> None:
    try:
        address = work.policy(Keyring).decrypt(row.address_ciphertext or "")
    except UndecryptableError:
        # The contact is the account's own address, or its address cannot be decrypted.
        address = f"contact {row.id}"
    sending = LimitedMessage(
        recipient=address,
        sender_id=work.actor.id,
        place=f"contacts of {owner.user_id} {owner.project_id} {owner.group_id}",
    )
    count_message(work, CONTACT_MESSAGE_LIMIT, sending)


def unconfirm_contacts_without_access(*, session: Session, now: datetime) -> int:
    """Unconfirm contacts that an application created, if the application has lost access.

    Return the number of contacts.
    """
    ended = session.scalars(
        build_bulk_update(ContactRow)
        .where(
            ContactRow.user_id.is_not(None),
            ~has_live_access(ContactRow.authorization_id, now),
        )
        .values(confirmed_at=None, authorization_id=None)
        .returning(ContactRow.id)
    ).all()
    return len(ended)


def confirm_contact(
    work: UnitOfWork, contact_id: int, code: str, owner: ContactOwner
) -> tuple[Contact, str | None]:
    """Confirm a contact with the code that was sent to it.

    Return the contact and the problem with the code, or the contact and None on success. The
    problem is returned instead of raised, so that the failed attempt is stored.
    """
    row = _lock_contact_row(contact_id, owner, session=work.session)
    if row.confirmed_at is None:
        problem = _find_code_problem(row, code, keyring=work.policy(Keyring), now=work.now)
        if problem is not None:
            return build_contact(row), problem
        row.confirmed_at, row.code_ciphertext, row.code_expires_at = work.now, None, None
    if lock_authorization(work) is None:
        # The contact no longer depends on the application that created it.
        row.authorization_id = None
    return build_contact(row), None


def _find_code_problem(
    row: ContactRow, code: str, *, keyring: Keyring, now: datetime
) -> str | None:
    expected = None
    if row.code_ciphertext is not None and row.code_expires_at and row.code_expires_at > now:
        with suppress(UndecryptableError):
            expected = keyring.decrypt(row.code_ciphertext)
    if expected is None:
        return "This code has expired. Send a new code."
    row.code_tries += 1
    if row.code_tries > _MAX_CODE_GUESSES:
        return "You entered too many wrong codes. Send a new code."
    given = "".join(code.split())
    is_right = hmac.compare_digest(given.encode(errors="replace"), expected.encode())
    return None if is_right else "The code is wrong. Enter the latest code that was sent."
