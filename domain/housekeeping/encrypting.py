"""Encryption of what older releases stored in clear, by the worker after an upgrade.

Migrations do not have SECRET_KEY. Hosts of an older release cannot read what is encrypted here, so
most of it waits until no such host is present.
"""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy.orm import Session

from domain.core.hosts import is_upgrading
from domain.core.keyring import Keyring
from domain.delivery.audit_streams.streams import AUDIT_STREAMS
from domain.delivery.mail.outbox import encrypt_clear_messages
from domain.delivery.webhooks.endpoints import WEBHOOKS


def encrypt_clear_rows(
    revision: str,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
    between: Callable[[], None],
) -> dict[str, int]:
    """Encrypt messages and URLs that are stored in clear; return how many of each kind.

    `revision` is the newest migration that this host knows; `between` commits.
    """
    is_last = not is_upgrading(revision, session=session, now=now)
    done = {
        "messages": encrypt_clear_messages(
            session=session, keyring=keyring, includes_tried=is_last, between=between
        )
    }
    if is_last:
        done["webhooks"] = WEBHOOKS.encrypt_clear_urls(session=session, keyring=keyring)
        done["audit_streams"] = AUDIT_STREAMS.encrypt_clear_urls(session=session, keyring=keyring)
        between()
    return done
