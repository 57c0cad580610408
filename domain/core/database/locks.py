"""Releases database locks before slow work, and defines the numbers of advisory locks.

The locks for triggers, daily alert counts and new project paths do not use these numbers. Their
numbers are hashes of strings.
"""

from enum import IntEnum, unique

from sqlalchemy import func, select
from sqlalchemy.orm import Session


def commit_to_release_locks(session: Session) -> None:
    """Commit the transaction to release its locks before slow work.

    On SQLite, a transaction that writes blocks all other writers, including alerts. On Postgres, a
    transaction that counts a sign-in attempt blocks other attempts from the same IP address. The
    next statement begins another transaction, so callers must reload the data that they need.
    """
    session.commit()


@unique
class AdvisoryLock(IntEnum):
    """The number of an advisory lock, which only one process across all hosts can hold at a time.

    The numbers are arbitrary.
    """

    MIGRATIONS = 7_240_118_364
    SIGNING_KEYS = 7_240_118_365
    REGISTRY_KEYS = 7_240_118_367
    #: Lock that serializes transfers of groups and projects, so that they cannot block each other.
    TRANSFERS = 7_240_118_368
    #: Lock that serializes failures of contacts. Each failure reroutes pages and notifies other
    #: users, so concurrent failures could deadlock on each other's contacts.
    FAILING_CONTACTS = 7_240_118_369
    PUSH_KEYS = 7_240_118_370

    def acquire(self, session: Session) -> None:
        """Acquire the lock until the transaction ends.

        SQLite needs no lock, since it allows only one writer.
        """
        if session.get_bind().dialect.name == "postgresql":
            session.execute(select(func.pg_advisory_xact_lock(self.value)))
