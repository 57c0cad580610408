"""Releases database locks before slow work."""

from sqlalchemy.orm import Session


def release_locks(session: Session) -> None:
    """Commit the transaction before slow work.

    On SQLite whoever has begun to write keeps all others from it, alerts included; on Postgres a
    counted guess keeps those from the same address. The next statement begins another transaction,
    so what was read before has to be looked at again where it matters.
    """
    session.commit()
