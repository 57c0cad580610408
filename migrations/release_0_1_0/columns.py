"""Column types and index conditions for both databases."""

from typing import Any

import sqlalchemy as sa

#: Type of ids. SQLite generates ids only for INTEGER PRIMARY KEY.
ID_TYPE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIMESTAMP_TYPE = sa.DateTime(timezone=True)


def build_foreign_key(table: str, name: str, *, ondelete: str | None = "CASCADE") -> sa.ForeignKey:
    """Return a foreign key to the id of another table."""
    return sa.ForeignKey(f"{table}.id", name=name, ondelete=ondelete)


def build_partial_index_options(condition: str) -> dict[str, Any]:
    """Return the options of a partial index with a condition in SQL."""
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}
