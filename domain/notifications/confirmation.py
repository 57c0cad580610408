"""Confirms a contact by a code that is sent to it: only what somebody reads pages them."""

import hmac
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.attempt_limits import AttemptLimit, claim_attempt
from domain.errors import InvalidError
from domain.keyring import Keyring, UndecipherableError
from domain.notifications.contacts import Owner, get_row, view_of
from domain.notifications.queueing import MessageKind, queue_message
from domain.notifications.types import Contact
from domain.randomness import random_letters
from models import Contact as ContactRow

_CODE_LIFETIME = timedelta(minutes=15)
_CODE_DIGITS = 6
_MOST_GUESSES = 5
#: Codes and tests go to addresses that anybody may enter.
_MOST_MESSAGES = 20
_WINDOW = timedelta(hours=1)


def send_code(
    contact_id: int, owner: Owner, *, session: Session, keyring: Keyring, now: datetime
) -> int:
    """Send a new code to a contact that is not confirmed, and return the id of the message."""
    row = get_row(contact_id, owner, session=session)
    if row.confirmed_at is not None:
        message = "This contact is already confirmed."
        raise InvalidError(message, field="code")
    _count(owner, session=session, keyring=keyring, now=now)
    row.code_ciphertext = keyring.encrypt(random_letters("0123456789", _CODE_DIGITS))
    row.code_expires_at, row.code_tries = now + _CODE_LIFETIME, 0
    return queue_message(row.id, MessageKind.CODE, session=session, now=now)


def send_test(
    contact_id: int, owner: Owner, *, session: Session, keyring: Keyring, now: datetime
) -> int:
    """Send a test message to a confirmed contact, and return the id of the message."""
    row = get_row(contact_id, owner, session=session)
    if row.confirmed_at is None:
        message = "Confirm the contact first. Until then it only gets codes."
        raise InvalidError(message, field="contact")
    _count(owner, session=session, keyring=keyring, now=now)
    return queue_message(row.id, MessageKind.TEST, session=session, now=now)


def _count(owner: Owner, *, session: Session, keyring: Keyring, now: datetime) -> None:
    subject = f"messages to contacts of {owner.user_id} {owner.project_id}"
    limit = AttemptLimit(subject=subject, attempts=_MOST_MESSAGES, window=_WINDOW)
    claim_attempt(limit, session=session, keyring=keyring, now=now)


def confirm_contact(
    contact_id: int, code: str, owner: Owner, *, session: Session, keyring: Keyring, now: datetime
) -> tuple[Contact, str | None]:
    """Confirm a contact by its code; return it, and what is wrong with the code or None.

    The guess is counted, so a refusal is returned rather than raised.
    """
    get_row(contact_id, owner, session=session)
    row = session.scalars(
        select(ContactRow).where(ContactRow.id == contact_id).with_for_update()
    ).one()
    if row.confirmed_at is not None:
        return view_of(row), None
    problem = _problem(row, code, keyring=keyring, now=now)
    if problem is None:
        row.confirmed_at, row.code_ciphertext, row.code_expires_at = now, None, None
    return view_of(row), problem


def _problem(row: ContactRow, code: str, *, keyring: Keyring, now: datetime) -> str | None:
    expected = _code_of(row, keyring=keyring, now=now)
    if expected is None:
        return "This code has expired. Send a new one."
    row.code_tries += 1
    if row.code_tries > _MOST_GUESSES:
        return "Too many wrong codes. Send a new one."
    given = "".join(code.split())
    is_right = hmac.compare_digest(given.encode(errors="replace"), expected.encode())
    return None if is_right else "This is not the code that was sent."


def _code_of(row: ContactRow, *, keyring: Keyring, now: datetime) -> str | None:
    if row.code_ciphertext is None or row.code_expires_at is None or row.code_expires_at <= now:
        return None
    try:
        return keyring.decrypt(row.code_ciphertext)
    except UndecipherableError:
        return None
