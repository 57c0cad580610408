"""Whether this process can do its work right now."""

import logging

from sqlalchemy.exc import SQLAlchemyError

from web.database import is_migrated
from web.extensions import db

_log = logging.getLogger("gatebell.readiness")


def what_is_missing() -> str | None:
    """Ask the database, and say in a word what keeps us from working, if anything does.

    It takes DATABASE_CONNECT_TIMEOUT_SECONDS at the most.
    """
    try:
        with db.engine.connect() as connection:
            return None if is_migrated(connection) else "not migrated"
    except SQLAlchemyError as error:
        _log.warning("the database is away", extra={"reason": type(error).__name__})
        return "away"
