"""Full-text search: alerts that have all the words, each of them whole or its beginning.

Migration 0006 keeps the words: a GIN index on Postgres, FTS5 on SQLite; 0016 keeps them without
accents as well, and here they are looked for without. How many have them decides
how they are sorted. Few alerts are named one by one. Where there are many, the list is walked in
its order and each alert is asked whether it has the words: the first page is full soon. On Postgres
a look at the newest alerts comes first, since the index would collect all of very many before it
named any.
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

#: Beyond this many, alerts with a word are not named one by one.
MOST_NAMED = 2_000
#: So many of the newest alerts tell how many of all have certain words …
_SAMPLE = 500
#: … if at least so many of them do.
_FEWEST_OF_SAMPLE = 5
_MOST_WORDS = 10
_LONGEST_WORD = 100
_SEARCH = table("alert_search", column("alert_id", BigInteger), column("document", String))
#: The table, as SQLite's MATCH wants it named.
_ANYWHERE: ColumnElement[str] = literal_column("alert_search")
_ROW: ColumnElement[int] = literal_column("alert_search.rowid", BigInteger)
#: As a constant of its type: looked up by name it would be no constant, and the words of a search
#: would be read again for each alert that is asked.
_SIMPLE: ColumnElement[str] = literal_column("'simple'::regconfig")
_ACCENTS = re.compile("([A-Za-z])[\u0300-\u036f]+")


@dataclass(frozen=True, kw_only=True)
class Matches:
    """The alerts of a project that have certain words."""

    #: Whether an alert is one of them.
    condition: ColumnElement[bool]
    #: Whether they are too many to be counted.
    are_many: bool


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of what somebody typed, at most ten; punctuation says nothing.

    Neither do arrows, dashes and pictures: the databases keep none of them.
    """
    found = "".join(map(_spoken, _without_accents(text))).split()
    spoken = [word for word in found if any(map(str.isalnum, word))]
    return tuple(word[:_LONGEST_WORD] for word in spoken[:_MOST_WORDS])


def _spoken(character: str) -> str:
    """Return a letter, a digit, or a mark that belongs to one; a blank for all else."""
    is_kept = character.isalnum() or category(character).startswith("M")
    return character if is_kept else " "


def _without_accents(text: str) -> str:
    """Return the text as the databases keep it: with the bare letter where one has an accent.

    Of Latin letters alone: in other scripts a mark can make another letter.
    """
    return normalize("NFC", _ACCENTS.sub(r"\1", normalize("NFD", text)))


def find_matches(words: tuple[str, ...], *, project_id: int, session: Session) -> Matches:
    """Look for the alerts of a project that have words which begin like these."""
    if not words:
        return Matches(condition=literal(value=False), are_many=False)
    # No word has a quote in it, so none can end its own.
    if session.get_bind().dialect.name == "postgresql":
        terms = " & ".join(f"'{word}':*" for word in words)
        return _on_postgres(terms, project_id, session=session)
    return _on_sqlite(" AND ".join(f'"{word}"*' for word in words), project_id, session=session)


def _on_postgres(terms: str, project_id: int, *, session: Session) -> Matches:
    query = func.to_tsquery(_SIMPLE, terms, type_=TSQUERY)
    if not _are_frequent(query, project_id, session=session):
        ids = session.scalars(select(func.alerts_with(query, project_id, MOST_NAMED + 1))).all()
        if len(ids) <= MOST_NAMED:
            named = cast(bindparam(None, list(ids)), ARRAY(BigInteger))
            return Matches(condition=Alert.id == any_(named), are_many=False)
    return Matches(condition=_has(query, Alert.id.expression), are_many=True)


def _has(query: ColumnElement[Any], alert_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Return whether an alert has the words.

    A subquery for each alert: the planner cannot turn it into looking for all of them first, or
    into reading the words of all alerts.
    """
    of_one = (
        select(_SEARCH.c.document.op("@@", return_type=Boolean())(query))
        .where(_SEARCH.c.alert_id == alert_id)
        .correlate(alert_id.table)
        .scalar_subquery()
    )
    return type_coerce(of_one, Boolean)


def _are_frequent(query: ColumnElement[Any], project_id: int, *, session: Session) -> bool:
    """Tell whether far too many to be named have the words, to judge by the newest alerts."""
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


def _on_sqlite(terms: str, project_id: int, *, session: Session) -> Matches:
    matching = select(_ROW).select_from(_SEARCH).where(_ANYWHERE.op("MATCH")(terms))
    few = (
        matching.join(Alert, Alert.id == _ROW)
        # Not a bare column: a planner that has not counted the tables would rather go over all
        # alerts of the project, and ask of each one by itself whether it has the words.
        .where(Alert.project_id + 0 == project_id)
        .limit(MOST_NAMED + 1)
    )
    ids = session.scalars(few).all()
    if len(ids) <= MOST_NAMED:
        return Matches(condition=Alert.id.in_(ids), are_many=False)
    # Nor here: the list is walked in its order, and not put in order once more.
    return Matches(condition=(Alert.id + 0).in_(matching), are_many=True)
