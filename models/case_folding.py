"""Case folding for names that are compared regardless of case and Unicode form.

SQLite folds only the letters A to Z, and folding in Postgres depends on the locale. Folded text is
therefore stored in a separate column.
"""

from typing import Any
from unicodedata import normalize

from sqlalchemy import ColumnElement, Text, event, func
from sqlalchemy.orm import InstrumentedAttribute, MappedColumn, mapped_column


def fold_text(text: str) -> str:
    """Return the text folded for caseless matching (Unicode section 3.13, D146)."""
    if text.isascii():
        return text.lower()
    once = normalize("NFKC", normalize("NFD", text).casefold())
    return normalize("NFKC", once.casefold())


def build_folded_column() -> MappedColumn[Any]:
    """Return a column for folded text, which `sync_folded_column` connects to its source column.

    The column is NULL in rows that older releases or the database itself wrote.
    """
    return mapped_column(Text)


def sync_folded_column(
    text: InstrumentedAttribute[str], key: InstrumentedAttribute[str | None]
) -> None:
    """Update the folded column whenever its source column is set."""

    def update_folded_column(row: object, value: str, _old: object, _initiator: object) -> None:
        setattr(row, key.key, fold_text(value))

    event.listen(text, "set", update_folded_column)


def build_search_text(
    text: InstrumentedAttribute[str], key: InstrumentedAttribute[str | None]
) -> ColumnElement[str]:
    """Return the SQL expression that is searched for folded words."""
    return func.coalesce(key, func.lower(text))
