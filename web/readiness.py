"""Readiness checks of this process."""

import logging

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.secret_keys import find_missing_fingerprints
from domain.housekeeping.clock_corrections import describe_recent_correction
from web.database.clock_offset import (
    describe_clock_offset,
    is_clock_offset_harmful,
    measure_clock_offset_ms,
)
from web.database.schema import SchemaState, get_schema_state
from web.extensions import db
from web.services import get_current_time, get_services

_log = logging.getLogger("gatebell.readiness")


def find_readiness_problem() -> str | None:
    """Check the database, and return a short description of the problem, or None.

    Waiting for a connection takes at most DATABASE_CONNECT_TIMEOUT_SECONDS.
    """
    try:
        with db.engine.connect() as connection:
            missing = _find_schema_or_key_problem(connection)
        return missing or _find_write_problem()
    except SQLAlchemyError as error:
        _log.warning(
            "Readiness check failed because the database was unavailable.",
            extra={"event": "readiness.database_unavailable", "reason": type(error).__name__},
        )
        return "away"


def _find_write_problem() -> str | None:
    """Return and log the reason why the database rejects writes, or None if it accepts them."""
    found = get_services().write_probe.find_problem(db.engine, now=get_current_time())
    if found is not None:
        _log.warning(
            "Readiness check failed because the database did not accept writes.",
            extra={"event": "readiness.database_not_writable", "reason": found},
        )
    return found


def _find_schema_or_key_problem(connection: Connection) -> str | None:
    words = {
        SchemaState.OLDER: "not migrated",
        SchemaState.TOO_NEW: "too new",
        SchemaState.TOO_OLD: "too old",
    }
    if word := words.get(get_schema_state(connection)):
        return word
    with Session(connection) as session:
        missing = find_missing_fingerprints(get_services().keyring, session=session)
    if missing:
        _log.warning(
            "Readiness check failed because SECRET_KEY and SECRET_KEY_FALLBACKS lack a key that "
            "other processes use.",
            extra={"event": "readiness.secret_key_missing", "fingerprints": missing},
        )
        return "wrong key"
    return None


def find_clock_warning() -> str | None:
    """Return a warning about a clock difference or a recently corrected clock, or None."""
    try:
        with db.engine.connect() as connection:
            lead = measure_clock_offset_ms(connection, clock=get_services().clock)
            if lead is not None and is_clock_offset_harmful(lead):
                return describe_clock_offset(lead)
            with Session(connection) as session:
                return describe_recent_correction(session=session, now=get_current_time())
    except SQLAlchemyError:
        return None
