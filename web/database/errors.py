"""Exception classes of database errors, for views and jobs."""

import sqlite3
import sys

from sqlalchemy.exc import SQLAlchemyError

__all__ = ["SQLAlchemyError", "list_database_errors"]


def list_database_errors() -> tuple[type[Exception], ...]:
    """Return the base classes of SQLAlchemy's errors and of the drivers' own errors.

    On SQLite, psycopg is not loaded, because it takes several megabytes of memory.
    """
    psycopg = sys.modules.get("psycopg")
    return (SQLAlchemyError, sqlite3.Error, *([psycopg.Error] if psycopg else []))
