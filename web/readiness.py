"""Readiness checks of this process."""

import logging

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.secret_keys import missing_fingerprints
from domain.housekeeping.clock_corrections import correction_remark
from web.database.clocks import clock_lead_ms, in_words, is_too_much
from web.database.schema import SchemaState, schema_state
from web.extensions import db
from web.services import now, services

_log = logging.getLogger("gatebell.readiness")


def readiness_problem() -> str | None:
    """Check the database and return the problem in a few words, or None.

    The check takes at most DATABASE_CONNECT_TIMEOUT_SECONDS.
    """
    try:
        with db.engine.connect() as connection:
            missing = _missing_in(connection)
        return missing or _write_problem()
    except SQLAlchemyError as error:
        _log.warning(
            "Readiness check failed because the database was unavailable.",
            extra={"event": "readiness.database_unavailable", "reason": type(error).__name__},
        )
        return "away"


def _write_problem() -> str | None:
    """Return and log the problem with writes, or None."""
    found = services().write_probe.problem(db.engine, now=now())
    if found is not None:
        _log.warning(
            "Readiness check failed because the database did not accept writes.",
            extra={"event": "readiness.database_not_writable", "reason": found},
        )
    return found


def _missing_in(connection: Connection) -> str | None:
    words = {
        SchemaState.OLDER: "not migrated",
        SchemaState.TOO_NEW: "too new",
        SchemaState.TOO_OLD: "too old",
    }
    if word := words.get(schema_state(connection)):
        return word
    with Session(connection) as session:
        missing = missing_fingerprints(services().keyring, session=session)
    if missing:
        _log.warning(
            "Readiness check failed because SECRET_KEY and SECRET_KEY_FALLBACKS lack a key that "
            "other processes use.",
            extra={"event": "readiness.secret_key_missing", "fingerprints": missing},
        )
        return "wrong key"
    return None


def clock_warning() -> str | None:
    """Return a warning if our clock and the database's differ or either ran ahead, or None."""
    try:
        with db.engine.connect() as connection:
            lead = clock_lead_ms(connection, clock=services().clock)
            if lead is not None and is_too_much(lead):
                return in_words(lead)
            with Session(connection) as session:
                return correction_remark(session=session, now=now())
    except SQLAlchemyError:
        return None
