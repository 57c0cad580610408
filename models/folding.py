"""Case folding for names that are compared without regard to case and spelling.

SQLite only folds a to z, and Postgres depends on its locale. So the folded text is stored in a
column of its own.
"""

from typing import Any
from unicodedata import normalize

from sqlalchemy import ColumnElement, Text, event, func
from sqlalchemy.orm import InstrumentedAttribute, MappedColumn, mapped_column


def fold(text: str) -> str:
    """Return the text folded for caseless matching (Unicode section 3.13, D146)."""
    if text.isascii():
        return text.lower()
    once = normalize("NFKC", normalize("NFD", text).casefold())
    return normalize("NFKC", once.casefold())


def folded() -> MappedColumn[Any]:
    """Return a column for a folded text; `keep_folded` connects it to its source.

    It is NULL in rows written by former versions or by the database itself.
    """
    return mapped_column(Text)


def keep_folded(text: InstrumentedAttribute[str], key: InstrumentedAttribute[str | None]) -> None:
    """Update the folded column whenever the text is set."""

    def follow(row: object, value: str, _old: object, _initiator: object) -> None:
        setattr(row, key.key, fold(value))

    event.listen(text, "set", follow)


def searchable(
    text: InstrumentedAttribute[str], key: InstrumentedAttribute[str | None]
) -> ColumnElement[str]:
    """Return the expression to search for a folded word."""
    return func.coalesce(key, func.lower(text))
