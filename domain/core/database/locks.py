"""Database locks: releasing them before slow work, and the numbers of advisory locks.

Triggers, daily alert counts and new paths lock the hash of a text, which is in another lock space
than these numbers.
"""

from enum import IntEnum, unique

from sqlalchemy import func, select
from sqlalchemy.orm import Session


def release_locks(session: Session) -> None:
    """Commit the transaction before slow work, which releases its locks.

    On SQLite, a transaction that writes blocks all other writers, including alerts. On Postgres, a
    counted guess blocks other guesses from the same address. The next statement begins another
    transaction, so callers must read relevant data again.
    """
    session.commit()


@unique
class AdvisoryLock(IntEnum):
    """An action that only one process on all hosts runs at a time; the numbers are arbitrary."""

    MIGRATIONS = 7_240_118_364
    SIGNING_KEYS = 7_240_118_365
    REGISTRY_KEYS = 7_240_118_367
    #: Serializes transfers of groups and projects, so that they cannot block each other.
    MOVES = 7_240_118_368
    #: Serializes failures of contacts. Each failure reroutes pages and notifies other users, so
    #: concurrent failures would need each other's contacts.
    FAILING_CONTACTS = 7_240_118_369

    def take(self, session: Session) -> None:
        """Hold the lock until the transaction ends; SQLite has only one writer anyway."""
        if session.get_bind().dialect.name == "postgresql":
            session.execute(select(func.pg_advisory_xact_lock(self.value)))
