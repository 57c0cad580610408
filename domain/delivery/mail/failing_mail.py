"""Queued emails whose last attempt failed, by the domain of the recipient.

Administrators see the domains, but not the addresses of the recipients.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_update
from domain.core.keyring import Keyring, UndecryptableError
from domain.delivery.mail.outbox import MAIL_HAS_FAILED, MAIL_QUEUE, redact_secret_links
from domain.delivery.queue import FailingDestination
from models import Mail

#: Maximum number of failing messages that are read, oldest first.
_MAX_READ = 5_000
#: Number of rows that are changed in one statement.
_BATCH_SIZE = 500
#: Age up to which abandoned messages are listed, and their maximum number.
_MAX_LISTED_AGE = timedelta(days=7)
_MAX_LISTED = 50


@dataclass(frozen=True, kw_only=True)
class AbandonedEmail:
    """An email that is no longer retried, with the domain of its recipient."""

    domain: str
    created_at: datetime
    tries: int
    last_error: str | None


def _get_domain(address: str) -> str:
    _, at, domain = address.rpartition("@")
    return domain.lower() if at else "?"


def _read_failing_emails(
    *, session: Session, now: datetime
) -> dict[str, list[Row[tuple[int, str, datetime, datetime, int, str]]]]:
    """Return queued messages with failed attempts by domain, oldest first."""
    queued = MAIL_QUEUE.build_waiting_condition(now, MAIL_HAS_FAILED)
    rows: Any = session.execute(
        select(Mail.id, Mail.recipient, Mail.created_at, Mail.send_at, Mail.tries, Mail.last_error)
        .where(queued, MAIL_HAS_FAILED)
        .order_by(Mail.created_at, Mail.id)
        .limit(_MAX_READ)
    )
    found = defaultdict(list)
    for row in rows:
        found[_get_domain(row.recipient)].append(row)
    return found


def list_failing_domains(*, session: Session, now: datetime) -> Sequence[FailingDestination]:
    """Return the domains of recipients with failing messages, longest failing first."""
    return [
        FailingDestination(
            id=domain,
            name=domain,
            waiting=len(rows),
            attempts=max(row.tries for row in rows),
            failing_since=rows[0].created_at,
            last_error=max(rows, key=lambda row: row.tries).last_error,
            next_attempt_at=min(row.send_at for row in rows),
        )
        for domain, rows in _read_failing_emails(session=session, now=now).items()
    ]


def retry_emails(domain: str, *, session: Session, now: datetime) -> None:
    """Make the failing messages to recipients of a domain due."""
    for ids in _list_failing_ids(domain, session=session, now=now):
        MAIL_QUEUE.retry_now(Mail.id.in_(ids), session=session, now=now)


def give_up_emails(domain: str, *, session: Session, keyring: Keyring, now: datetime) -> int:
    """Give up the failing messages to recipients of a domain, and return their number.

    The messages and their errors are kept, but the secrets in their links are removed.
    """
    total = 0
    for ids in _list_failing_ids(domain, session=session, now=now):
        rows = session.execute(
            build_bulk_update(Mail)
            .where(Mail.id.in_(ids), Mail.send_at.is_not(None))
            .values(send_at=None)
            .returning(Mail.id, Mail.text_ciphertext)
        ).all()
        for row in rows:
            _redact_email(row.id, row.text_ciphertext or "", session=session, keyring=keyring)
        total += len(rows)
    return total


def _list_failing_ids(domain: str, *, session: Session, now: datetime) -> list[list[int]]:
    rows = _read_failing_emails(session=session, now=now).get(domain, [])
    ids = [row.id for row in rows]
    return [ids[first : first + _BATCH_SIZE] for first in range(0, len(ids), _BATCH_SIZE)]


def _redact_email(
    mail_id: int, text_ciphertext: str, *, session: Session, keyring: Keyring
) -> None:
    try:
        text = keyring.decrypt(text_ciphertext)
    except UndecryptableError:
        return
    kept = redact_secret_links(text)
    if kept != text:
        values = {"text_ciphertext": keyring.encrypt(kept)}
        session.execute(build_bulk_update(Mail).where(Mail.id == mail_id).values(values))


def list_abandoned_emails(*, session: Session, now: datetime) -> Sequence[AbandonedEmail]:
    """Return recent messages that are no longer retried, newest first."""
    rows = session.execute(
        select(Mail.recipient, Mail.created_at, Mail.tries, Mail.last_error)
        .where(
            Mail.created_at > now - _MAX_LISTED_AGE,
            Mail.send_at.is_(None),
            Mail.next_try_at.is_(None),
            Mail.sent_at.is_(None),
        )
        .order_by(Mail.created_at.desc(), Mail.id.desc())
        .limit(_MAX_LISTED)
    )
    return [
        AbandonedEmail(
            domain=_get_domain(row.recipient),
            created_at=row.created_at,
            tries=row.tries,
            last_error=row.last_error,
        )
        for row in rows
    ]
