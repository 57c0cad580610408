"""Locks of the database, and when to let go of them."""

from sqlalchemy.orm import Session


def release_locks(session: Session) -> None:
    """End the transaction before something slow: what was written so far is kept.

    On SQLite whoever has begun to write keeps all others from it, alerts included; on Postgres a
    counted guess keeps those from the same address. The next statement begins another transaction,
    so what was read before has to be looked at again where it matters.
    """
    session.commit()
