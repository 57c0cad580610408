"""Decrypts the texts of messages in an outbox."""

from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value

from domain.core.keyring import Keyring
from models import Mail
from tests.support.accounts.people import Person, database_of, settings_of
from tests.support.service.live import LiveGatebell


def decrypt_mails(mails: Iterable[Mail], secret_key: str) -> list[Mail]:
    """Return messages with decrypted texts."""
    keyring, found = Keyring(secret_key), list(mails)
    for each in found:
        if each.text_ciphertext is not None:
            set_committed_value(each, "text", keyring.decrypt(each.text_ciphertext))
    return found


def list_stored_mails(session: Session, secret_key: str) -> list[Mail]:
    """Return all messages with decrypted texts, oldest first, detached from the session."""
    found = list(session.scalars(select(Mail).order_by(Mail.id)))
    session.expunge_all()
    return decrypt_mails(found, secret_key)


def list_texts(service: LiveGatebell, reader: Person | str) -> Sequence[str]:
    """Return the texts of all messages to an address, oldest first."""
    email = reader if isinstance(reader, str) else reader.email
    with database_of(service) as session:
        mails = list_stored_mails(session, settings_of(service).secret_key)
    return [each.text for each in mails if each.recipient == email]
