"""Encrypts plaintext data left by older releases, in the background worker after an upgrade.

Migrations have no access to SECRET_KEY. Hosts that run an older release cannot read encrypted data,
so most data is encrypted only after all hosts are upgraded.
"""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy.orm import Session

from domain.core.hosts import is_upgrading
from domain.core.keyring import Keyring
from domain.delivery.audit_streams.streams import AUDIT_STREAM_KIND
from domain.delivery.mail.outbox import encrypt_plaintext_emails
from domain.delivery.webhooks.endpoints import WEBHOOK_KIND


def encrypt_plaintext_rows(
    revision: str,
    *,
    session: Session,
    keyring: Keyring,
    now: datetime,
    commit_batch: Callable[[], None],
) -> dict[str, int]:
    """Encrypt messages and URLs that are stored in plain text, and return counts by kind.

    `revision` is the latest migration in this host's code. `commit_batch` commits a batch.
    """
    is_last = not is_upgrading(revision, session=session, now=now)
    done = {
        "messages": encrypt_plaintext_emails(
            session=session, keyring=keyring, includes_tried=is_last, commit_batch=commit_batch
        )
    }
    if is_last:
        done["webhooks"] = WEBHOOK_KIND.encrypt_plaintext_urls(session=session, keyring=keyring)
        done["audit_streams"] = AUDIT_STREAM_KIND.encrypt_plaintext_urls(
            session=session, keyring=keyring
        )
        commit_batch()
    return done
