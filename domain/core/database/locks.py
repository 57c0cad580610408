"""Locks of the database: what is released before slow work, and numbers of advisory locks.

Triggers, the adding up of days and new paths lock by the hash of a word of their own, which is
another space than those numbers.
"""

from enum import IntEnum, unique

from sqlalchemy import func, select
from sqlalchemy.orm import Session


def release_locks(session: Session) -> None:
    """Commit the transaction before slow work.

    On SQLite whoever has begun to write keeps all others from it, alerts included; on Postgres a
    counted guess keeps those from the same address. The next statement begins another transaction,
    so what was read before has to be looked at again where it matters.
    """
    session.commit()


@unique
class AdvisoryLock(IntEnum):
    """An action that one process on all hosts does at a time; the numbers are arbitrary."""

    MIGRATIONS = 7_240_118_364
    SIGNING_KEYS = 7_240_118_365
    REGISTRY_KEYS = 7_240_118_367
    #: No two moves of groups and projects can block each other.
    MOVES = 7_240_118_368
    #: A contact that fails passes its pages on, and tells others: each needs their contacts.
    FAILING_CONTACTS = 7_240_118_369

    def take(self, session: Session) -> None:
        """Hold the lock until this transaction ends; on SQLite who writes is alone anyway."""
        if session.get_bind().dialect.name == "postgresql":
            session.execute(select(func.pg_advisory_xact_lock(self.value)))
