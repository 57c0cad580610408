"""Types of columns, and conditions of indexes, on both kinds of database."""

from typing import Any

import sqlalchemy as sa

#: SQLite only generates ids for INTEGER PRIMARY KEY.
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def key_of(table: str, name: str, *, ondelete: str | None = "CASCADE") -> sa.ForeignKey:
    """Return the reference of a column to the ids of a table."""
    return sa.ForeignKey(f"{table}.id", name=name, ondelete=ondelete)


def only_where(condition: str) -> dict[str, Any]:
    """Return the options of an index that has the rows for which a condition in SQL holds."""
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}
