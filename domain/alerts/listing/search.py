"""Full-text search: finds the alerts that have all words of a query, or words that begin so.

The words are in a GIN index on Postgres and in an FTS5 table on SQLite (migration 0051), without
accents. The number of matches decides how they are listed:

- Few matches are listed by their ids.
- If there are many, the list is read in its order and each alert is checked for the words, so the
  first page fills quickly.

On Postgres a sample of the newest alerts is checked first, since a GIN index collects all matches
before it returns the first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category, normalize

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Select,
    String,
    TableClause,
    any_,
    bindparam,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    table,
    true,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSQUERY
from sqlalchemy.orm import Session, aliased

from models import Alert

#: The most matches that are listed by their ids.
MOST_NAMED = 2_000
#: The number of newest alerts from which the number of matches is estimated,
_SAMPLE = 500
#: and the fewest matches among them for an estimate.
_FEWEST_OF_SAMPLE = 5
_MOST_WORDS = 10
_LONGEST_WORD = 100
#: A constant of type regconfig: a text would be converted, and the query parsed, for each alert
#: that is checked.
_SIMPLE: ColumnElement[str] = literal_column("'simple'::regconfig")
_ACCENTS = re.compile("([A-Za-z])[\u0300-\u036f]+")


@dataclass(frozen=True, kw_only=True)
class SearchIndex:
    """The words of a kind of rows, which migrations store in a table beside theirs."""

    #: The class of the rows, with the columns `id`, `project_id` and `iid`.
    model: type[Any]
    #: The name of the table with the words.
    table: str
    #: On Postgres, the name of its column with the id of a row,
    key: str
    #: and the function that returns the ids of rows with given words.
    function: str

    @property
    def search(self) -> TableClause:
        """The table with the words on Postgres."""
        return table(self.table, column(self.key, BigInteger), column("document", String))

    @property
    def anywhere(self) -> ColumnElement[str]:
        """The table as the left operand of SQLite's MATCH."""
        return literal_column(self.table)

    @property
    def row(self) -> ColumnElement[int]:
        """The id of a row on SQLite."""
        return literal_column(f"{self.table}.rowid", BigInteger)


ALERTS = SearchIndex(model=Alert, table="alert_search", key="alert_id", function="alerts_with")


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The alerts of a project that match a search."""

    #: The SQL condition on a row.
    condition: ColumnElement[bool]
    #: Whether there are too many to be counted.
    are_many: bool


def search_words(text: str) -> tuple[str, ...]:
    """Return the words of a query, at most ten; punctuation, arrows and emoji are ignored.

    The indexes of both databases have only letters and digits.
    """
    # Without accents, as the indexes have it. Only for Latin letters: in other scripts a mark can
    # make a different letter.
    plain = normalize("NFC", _ACCENTS.sub(r"\1", normalize("NFD", text)))
    found = "".join(
        each if each.isalnum() or category(each).startswith("M") else " " for each in plain
    ).split()
    words = [word for word in found if any(map(str.isalnum, word))]
    return tuple(word[:_LONGEST_WORD] for word in words[:_MOST_WORDS])


def find_matches(
    words: tuple[str, ...], *, project_id: int, session: Session, index: SearchIndex = ALERTS
) -> SearchResult:
    """Find the rows of a project that have, for each word, one that begins with it."""
    if not words:
        return SearchResult(condition=literal(value=False), are_many=False)
    # Words have no quotes, so they cannot end the quoted term.
    if session.get_bind().dialect.name == "postgresql":
        terms = " & ".join(f"'{word}':*" for word in words)
        return _on_postgres(terms, project_id, index, session=session)
    terms = " AND ".join(f'"{word}"*' for word in words)
    return _on_sqlite(terms, project_id, index, session=session)


def find_matches_across(
    words: tuple[str, ...], projects: Select[int], *, session: Session
) -> SearchResult:
    """As `find_matches`, for the alerts of several projects, whose ids are selected."""
    if not words:
        return SearchResult(condition=literal(value=False), are_many=False)
    if session.get_bind().dialect.name != "postgresql":
        terms = " AND ".join(f'"{word}"*' for word in words)
        return _on_sqlite(terms, projects, ALERTS, session=session)
    terms = " & ".join(f"'{word}':*" for word in words)
    query = func.to_tsquery(_SIMPLE, terms, type_=TSQUERY)
    listed = session.scalars(projects).all()
    if not _are_frequent_across(query, listed, session=session):
        each = func.unnest(cast(bindparam(None, list(listed)), ARRAY(BigInteger)))
        project = each.table_valued("id", name="listed").render_derived()
        of_project = func.alerts_with(query, project.c.id, MOST_NAMED + 1)
        found = select(of_project.column_valued("id")).correlate(project).lateral("found")
        statement = select(found.c.id).select_from(project.join(found, true()))
        ids = session.scalars(statement.limit(MOST_NAMED + 1)).all()
        if len(ids) <= MOST_NAMED:
            named = cast(bindparam(None, list(ids)), ARRAY(BigInteger))
            return SearchResult(condition=Alert.id.expression == any_(named), are_many=False)
    return SearchResult(condition=_has(query, Alert.id.expression, ALERTS), are_many=True)


def _are_frequent_across(
    query: ColumnElement[Any], project_ids: Sequence[int], *, session: Session
) -> bool:
    """As `_are_frequent`, judging by some of the newest alerts of each project."""
    size = max(_FEWEST_OF_SAMPLE, _SAMPLE // max(1, len(project_ids)))
    each = func.unnest(cast(bindparam(None, list(project_ids)), ARRAY(BigInteger)))
    project = each.table_valued("id", name="listed").render_derived()
    last = _last_number(Alert, project.c.id).correlate(project).lateral("last")
    of_each = _newest(Alert, project.c.id, last.c.iid, size)
    newest = of_each.correlate(project, last).lateral("newest")
    rows = session.execute(
        select(
            func.count().filter(_has(query, newest.c.id, ALERTS)),
            func.max(newest.c.iid),
        )
        .select_from(project.join(last, true()).join(newest, true()))
        .group_by(project.c.id)
    ).all()
    found = sum(matching for matching, _ in rows)
    estimate = sum(matching * last / size for matching, last in rows)
    return bool(found >= _FEWEST_OF_SAMPLE and estimate > 2 * MOST_NAMED)


def _on_postgres(
    terms: str, project_id: int, index: SearchIndex, *, session: Session
) -> SearchResult:
    query = func.to_tsquery(_SIMPLE, terms, type_=TSQUERY)
    row_id = index.model.id.expression
    if not _are_frequent(query, project_id, index, session=session):
        found = getattr(func, index.function)(query, project_id, MOST_NAMED + 1)
        ids = session.scalars(select(found)).all()
        if len(ids) <= MOST_NAMED:
            named = cast(bindparam(None, list(ids)), ARRAY(BigInteger))
            return SearchResult(condition=row_id == any_(named), are_many=False)
    return SearchResult(condition=_has(query, row_id, index), are_many=True)


def _has(
    query: ColumnElement[Any], row_id: ColumnElement[int], index: SearchIndex
) -> ColumnElement[bool]:
    """Return the condition that a row has the words.

    A correlated subquery keeps the planner from collecting all matches first, and from reading the
    words of all rows.
    """
    search = index.search
    of_one = (
        select(search.c.document.op("@@", return_type=Boolean())(query))
        .where(search.c[index.key] == row_id)
        .correlate(row_id.table)
        .scalar_subquery()
    )
    return type_coerce(of_one, Boolean)


def _are_frequent(
    query: ColumnElement[Any], project_id: int, index: SearchIndex, *, session: Session
) -> bool:
    """Return whether many more rows match than can be listed, judging by the newest ones."""
    model = index.model
    # Not in the statement itself: of a number that it does not know, Postgres believes that a third
    # of all rows come after it, and reads all of them.
    last = session.scalar(_last_number(model, project_id)) or 0
    newest = _newest(model, project_id, last, _SAMPLE).subquery()
    count = func.count().filter(_has(query, newest.c.id, index))
    found = session.scalar(select(count).select_from(newest)) or 0
    return found >= _FEWEST_OF_SAMPLE and found * last > 2 * MOST_NAMED * _SAMPLE


def _last_number(model: type[Any], project_id: Any) -> Select[int]:
    other = aliased(model)
    return select(func.max(other.iid).label("iid")).where(other.project_id == project_id)


def _newest(model: type[Any], project_id: Any, last: Any, count: int) -> Select[int, int]:
    """Return the query for the rows of a project with its last numbers.

    They are found by their numbers: before Postgres has counted the rows, it would rather sort all
    of a project than walk an index for as many as these.
    """
    return select(model.id, model.iid).where(
        model.project_id == project_id, model.iid > last - count
    )


def _on_sqlite(
    terms: str, projects: int | Select[int], index: SearchIndex, *, session: Session
) -> SearchResult:
    model, row = index.model, index.row
    # `+ 0` disables the project's index: without statistics the planner would read all rows
    # of the project and check each one for the words.
    project = model.project_id + 0
    is_inside = project == projects if isinstance(projects, int) else project.in_(projects)
    matching = select(row).select_from(index.search).where(index.anywhere.op("MATCH")(terms))
    few = matching.join(model, model.id == row).where(is_inside).limit(MOST_NAMED + 1)
    ids = session.scalars(few).all()
    if len(ids) <= MOST_NAMED:
        return SearchResult(condition=model.id.in_(ids), are_many=False)
    # `+ 0` here as well: the list is read in its order instead of being sorted.
    return SearchResult(condition=(model.id + 0).in_(matching), are_many=True)
