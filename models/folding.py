"""One folding of texts, for what people find whatever the case and the keyboard.

The databases fold in ways of their own: SQLite only the letters a to z, Postgres as its locale
says. So the folded text is kept in a column beside the text, and both are compared here.
"""

from typing import Any
from unicodedata import normalize

from sqlalchemy import ColumnElement, Text, event, func
from sqlalchemy.orm import InstrumentedAttribute, MappedColumn, mapped_column


def fold(text: str) -> str:
    """Return what is the same for all spellings of a text (Unicode 3.13, D146)."""
    if text.isascii():
        return text.lower()
    once = normalize("NFKC", normalize("NFD", text).casefold())
    return normalize("NFKC", once.casefold())


def folded() -> MappedColumn[Any]:
    """Return a column for a folded text; `keep_folded` says of which.

    It is empty where a host of a former version, or the database itself, wrote the row.
    """
    return mapped_column(Text)


def keep_folded(text: InstrumentedAttribute[str], key: InstrumentedAttribute[str | None]) -> None:
    """Let a folded text follow the text, whoever sets it."""

    def follow(row: object, value: str, _old: object, _initiator: object) -> None:
        setattr(row, key.key, fold(value))

    event.listen(text, "set", follow)


def searchable(
    text: InstrumentedAttribute[str], key: InstrumentedAttribute[str | None]
) -> ColumnElement[str]:
    """Return what a folded word is looked for in."""
    return func.coalesce(key, func.lower(text))
