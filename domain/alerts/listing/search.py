"""Full-text search: finds the alerts that have all words of a query, or words that begin so.

The words are in a GIN index on Postgres and in an FTS5 table on SQLite (migration 0006), without
accents (migration 0016). The number of matches decides how they are listed:

- Few matches are listed by their ids.
- If there are many, the list is read in its order and each alert is checked for the words, so the
  first page fills quickly.

On Postgres a sample of the newest alerts is checked first, since a GIN index collects all matches
before it returns the first.
"""

import re
from dataclasses import dataclass
from typing import Any
from unicodedata import category, normalize

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    String,
    any_,
    bindparam,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    table,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSQUERY
from sqlalchemy.orm import Session

from models import Alert

#: The most matches that are listed by their ids.
MOST_NAMED = 2_000
#: The number of newest alerts from which the number of matches is estimated,
_SAMPLE = 500
#: and the fewest matches among them for an estimate.
_FEWEST_OF_SAMPLE = 5
_MOST_WORDS = 10
_LONGEST_WORD = 100
_SEARCH = table("alert_search", column("alert_id", BigInteger), column("document", String))
#: The table as the left operand of SQLite's MATCH.
_ANYWHERE: ColumnElement[str] = literal_column("alert_search")
_ROW: ColumnElement[int] = literal_column("alert_search.rowid", BigInteger)
#: A constant of type regconfig: a text would be converted, and the query parsed, for each alert
#: that is checked.
_SIMPLE: ColumnElement[str] = literal_column("'simple'::regconfig")
_ACCENTS = re.compile("([A-Za-z])[\u0300-\u036f]+")


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The alerts of a project that match a search."""

    #: The SQL condition on an alert.
    condition: ColumnElement[bool]
    #: Whether there are too many to be counted.
    are_many: bool


def search_words(text: str) -> tuple[str, ...]:
    """Return the words of a query, at most ten; punctuation, arrows and emoji are ignored.

    The indexes of both databases have only letters and digits.
    """
    found = "".join(map(_word_character, _without_accents(text))).split()
    words = [word for word in found if any(map(str.isalnum, word))]
    return tuple(word[:_LONGEST_WORD] for word in words[:_MOST_WORDS])


def _word_character(character: str) -> str:
    """Return a letter, digit or combining mark as it is, and a space for other characters."""
    is_kept = character.isalnum() or category(character).startswith("M")
    return character if is_kept else " "


def _without_accents(text: str) -> str:
    """Return the text without accents, as the indexes have it.

    Only for Latin letters: in other scripts a mark can make a different letter.
    """
    return normalize("NFC", _ACCENTS.sub(r"\1", normalize("NFD", text)))


def find_matches(words: tuple[str, ...], *, project_id: int, session: Session) -> SearchResult:
    """Find the alerts of a project that have, for each word, one that begins with it."""
    if not words:
        return SearchResult(condition=literal(value=False), are_many=False)
    # Words have no quotes, so they cannot end the quoted term.
    if session.get_bind().dialect.name == "postgresql":
        terms = " & ".join(f"'{word}':*" for word in words)
        return _on_postgres(terms, project_id, session=session)
    return _on_sqlite(" AND ".join(f'"{word}"*' for word in words), project_id, session=session)


def _on_postgres(terms: str, project_id: int, *, session: Session) -> SearchResult:
    query = func.to_tsquery(_SIMPLE, terms, type_=TSQUERY)
    if not _are_frequent(query, project_id, session=session):
        ids = session.scalars(select(func.alerts_with(query, project_id, MOST_NAMED + 1))).all()
        if len(ids) <= MOST_NAMED:
            named = cast(bindparam(None, list(ids)), ARRAY(BigInteger))
            return SearchResult(condition=Alert.id == any_(named), are_many=False)
    return SearchResult(condition=_has(query, Alert.id.expression), are_many=True)


def _has(query: ColumnElement[Any], alert_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that an alert has the words.

    A correlated subquery keeps the planner from collecting all matches first, and from reading the
    words of all alerts.
    """
    of_one = (
        select(_SEARCH.c.document.op("@@", return_type=Boolean())(query))
        .where(_SEARCH.c.alert_id == alert_id)
        .correlate(alert_id.table)
        .scalar_subquery()
    )
    return type_coerce(of_one, Boolean)


def _are_frequent(query: ColumnElement[Any], project_id: int, *, session: Session) -> bool:
    """Return whether many more alerts match than can be listed, judging by the newest ones."""
    newest = (
        select(Alert.id, Alert.iid)
        .where(Alert.project_id == project_id)
        .order_by(Alert.iid.desc())
        .limit(_SAMPLE)
        .subquery()
    )
    found, total = session.execute(
        select(
            func.count().filter(_has(query, newest.c.id)),
            func.coalesce(func.max(newest.c.iid), 0),
        ).select_from(newest)
    ).one()
    return bool(found >= _FEWEST_OF_SAMPLE and found * total > 2 * MOST_NAMED * _SAMPLE)


def _on_sqlite(terms: str, project_id: int, *, session: Session) -> SearchResult:
    matching = select(_ROW).select_from(_SEARCH).where(_ANYWHERE.op("MATCH")(terms))
    few = (
        matching.join(Alert, Alert.id == _ROW)
        # `+ 0` disables the project's index: without statistics the planner would read all alerts
        # of the project and check each one for the words.
        .where(Alert.project_id + 0 == project_id)
        .limit(MOST_NAMED + 1)
    )
    ids = session.scalars(few).all()
    if len(ids) <= MOST_NAMED:
        return SearchResult(condition=Alert.id.in_(ids), are_many=False)
    # `+ 0` here as well: the list is read in its order instead of being sorted.
    return SearchResult(condition=(Alert.id + 0).in_(matching), are_many=True)
