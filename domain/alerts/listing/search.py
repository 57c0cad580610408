"""Full-text search for alerts that contain every query word, as a word or a prefix of a word.

The words are stored without accents, in a GIN index on Postgres and in an FTS5 table on SQLite
(migration 0051). The number of matches determines how they are listed:

- A small number of matches is listed by ID.
- For a large number of matches, the list is read in its order and each alert is checked for the
  words, so that the first page is filled quickly.

On Postgres, a sample of the newest alerts is checked first. A GIN index would collect all matches
before it returns the first match.
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

#: Maximum number of matches that are listed by ID.
MAX_MATCHES_LISTED_BY_ID = 2_000
#: Number of newest alerts from which the number of matches is estimated.
_SAMPLE_SIZE = 500
#: Minimum number of matches in the sample for an estimate.
_MIN_SAMPLE_MATCHES = 5
_MAX_WORDS = 10
_MAX_WORD_LENGTH = 100
#: Constant of type regconfig. If it were a string, Postgres would convert the string and parse the
#: query for each alert that it checks.
_SIMPLE_CONFIGURATION: ColumnElement[str] = literal_column("'simple'::regconfig")
_ACCENTS = re.compile("([A-Za-z])[\u0300-\u036f]+")


@dataclass(frozen=True, kw_only=True)
class SearchIndex:
    """A full-text index of the rows of a model. A separate table contains the words."""

    #: Model of the rows, with the columns `id`, `project_id` and `iid`.
    model: type[Any]
    #: Name of the table that contains the words.
    table: str
    #: Name of the column in the search table that contains the ID of a row, on Postgres.
    key: str
    #: Name of the function that returns the IDs of rows with given words, on Postgres.
    function: str

    @property
    def words_table(self) -> TableClause:
        """Table that contains the words, on Postgres."""
        return table(self.table, column(self.key, BigInteger), column("document", String))

    @property
    def match_operand(self) -> ColumnElement[str]:
        """Table as the left operand of MATCH, on SQLite."""
        return literal_column(self.table)

    @property
    def row_id(self) -> ColumnElement[int]:
        """ID of a row, on SQLite."""
        return literal_column(f"{self.table}.rowid", BigInteger)


ALERT_SEARCH_INDEX = SearchIndex(
    model=Alert, table="alert_search", key="alert_id", function="alerts_with"
)


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """An SQL condition for the rows that match a search."""

    #: SQL condition for the rows.
    condition: ColumnElement[bool]
    #: True if there are too many matches to count.
    has_too_many_matches: bool


def parse_search_words(text: str) -> tuple[str, ...]:
    """Return at most ten words from a query, without punctuation, arrows and emoji.

    The indexes of both databases contain only letters and digits.
    """
    # Remove accents, as in the indexes, but only from Latin letters. In other scripts, a combining
    # mark can form a different letter.
    plain = normalize("NFC", _ACCENTS.sub(r"\1", normalize("NFD", text)))
    found = "".join(
        each if each.isalnum() or category(each).startswith("M") else " " for each in plain
    ).split()
    words = [word for word in found if any(map(str.isalnum, word))]
    return tuple(word[:_MAX_WORD_LENGTH] for word in words[:_MAX_WORDS])


def find_matches(
    words: tuple[str, ...],
    *,
    project_id: int,
    session: Session,
    index: SearchIndex = ALERT_SEARCH_INDEX,
) -> SearchResult:
    """Find the rows of a project that contain a word with each of the given prefixes."""
    if not words:
        return SearchResult(condition=literal(value=False), has_too_many_matches=False)
    # Words contain no quotes, so they cannot end the quoted term.
    if session.get_bind().dialect.name == "postgresql":
        terms = " & ".join(f"'{word}':*" for word in words)
        return _search_on_postgres(terms, project_id, index, session=session)
    terms = " AND ".join(f'"{word}"*' for word in words)
    return _search_on_sqlite(terms, project_id, index, session=session)


def find_matches_across_projects(
    words: tuple[str, ...],
    projects: Select[int],
    *,
    session: Session,
    index: SearchIndex = ALERT_SEARCH_INDEX,
) -> SearchResult:
    """Find matching rows, like `find_matches`, in the projects that a query selects."""
    if not words:
        return SearchResult(condition=literal(value=False), has_too_many_matches=False)
    if session.get_bind().dialect.name != "postgresql":
        terms = " AND ".join(f'"{word}"*' for word in words)
        return _search_on_sqlite(terms, projects, index, session=session)
    terms = " & ".join(f"'{word}':*" for word in words)
    query = func.to_tsquery(_SIMPLE_CONFIGURATION, terms, type_=TSQUERY)
    listed, row_id = session.scalars(projects).all(), index.model.id.expression
    if not _are_matches_frequent_across_projects(query, listed, index, session=session):
        each = func.unnest(cast(bindparam(None, list(listed)), ARRAY(BigInteger)))
        project = each.table_valued("id", name="listed").render_derived()
        of_project = getattr(func, index.function)(
            query, project.c.id, MAX_MATCHES_LISTED_BY_ID + 1
        )
        found = select(of_project.column_valued("id")).correlate(project).lateral("found")
        statement = select(found.c.id).select_from(project.join(found, true()))
        ids = session.scalars(statement.limit(MAX_MATCHES_LISTED_BY_ID + 1)).all()
        if len(ids) <= MAX_MATCHES_LISTED_BY_ID:
            named = cast(bindparam(None, list(ids)), ARRAY(BigInteger))
            return SearchResult(condition=row_id == any_(named), has_too_many_matches=False)
    return SearchResult(
        condition=_build_match_condition(query, row_id, index),
        has_too_many_matches=True,
    )


def _are_matches_frequent_across_projects(
    query: ColumnElement[Any], project_ids: Sequence[int], index: SearchIndex, *, session: Session
) -> bool:
    """Make the same estimate as `_are_matches_frequent`, from samples of several projects."""
    size = max(_MIN_SAMPLE_MATCHES, _SAMPLE_SIZE // max(1, len(project_ids)))
    each = func.unnest(cast(bindparam(None, list(project_ids)), ARRAY(BigInteger)))
    project = each.table_valued("id", name="listed").render_derived()
    last = _build_last_number_query(index.model, project.c.id).correlate(project).lateral("last")
    of_each = _build_newest_query(index.model, project.c.id, last.c.iid, size)
    newest = of_each.correlate(project, last).lateral("newest")
    rows = session.execute(
        select(
            func.count().filter(_build_match_condition(query, newest.c.id, index)),
            func.max(newest.c.iid),
        )
        .select_from(project.join(last, true()).join(newest, true()))
        .group_by(project.c.id)
    ).all()
    found = sum(matching for matching, _ in rows)
    estimate = sum(matching * last / size for matching, last in rows)
    return bool(found >= _MIN_SAMPLE_MATCHES and estimate > 2 * MAX_MATCHES_LISTED_BY_ID)


def find_ids_by_number(
    number: int,
    projects: Select[int],
    *,
    session: Session,
    index: SearchIndex = ALERT_SEARCH_INDEX,
) -> Sequence[int]:
    """Return the IDs of rows with the given number in the selected projects, newest first.

    The query contains a scalar subquery, so that the planners of both databases look up one row for
    each project.
    """
    listed, model = projects.subquery("listed"), index.model
    of_project = (
        select(model.id)
        .where(model.project_id == listed.c.id, model.iid == number)
        .correlate(listed)
        .scalar_subquery()
    )
    found = session.scalars(select(of_project).select_from(listed))
    return sorted((each for each in found if each is not None), reverse=True)


def _search_on_postgres(
    terms: str, project_id: int, index: SearchIndex, *, session: Session
) -> SearchResult:
    query = func.to_tsquery(_SIMPLE_CONFIGURATION, terms, type_=TSQUERY)
    row_id = index.model.id.expression
    if not _are_matches_frequent(query, project_id, index, session=session):
        found = getattr(func, index.function)(query, project_id, MAX_MATCHES_LISTED_BY_ID + 1)
        ids = session.scalars(select(found)).all()
        if len(ids) <= MAX_MATCHES_LISTED_BY_ID:
            named = cast(bindparam(None, list(ids)), ARRAY(BigInteger))
            return SearchResult(condition=row_id == any_(named), has_too_many_matches=False)
    return SearchResult(
        condition=_build_match_condition(query, row_id, index), has_too_many_matches=True
    )


def _build_match_condition(
    query: ColumnElement[Any], row_id: ColumnElement[int], index: SearchIndex
) -> ColumnElement[bool]:
    """Return a condition that is true if a row contains the words.

    A correlated subquery prevents the planner from collecting all matches first, and from reading
    the words of all rows.
    """
    search = index.words_table
    of_one = (
        select(search.c.document.op("@@", return_type=Boolean())(query))
        .where(search.c[index.key] == row_id)
        .correlate(row_id.table)
        .scalar_subquery()
    )
    return type_coerce(of_one, Boolean)


def _are_matches_frequent(
    query: ColumnElement[Any], project_id: int, index: SearchIndex, *, session: Session
) -> bool:
    """Estimate from the newest rows whether more rows match than can be listed by ID."""
    model = index.model
    # Use a separate query. If the number were unknown, the planner would assume that a third of all
    # rows match, and would read all of them.
    last = session.scalar(_build_last_number_query(model, project_id)) or 0
    newest = _build_newest_query(model, project_id, last, _SAMPLE_SIZE).subquery()
    count = func.count().filter(_build_match_condition(query, newest.c.id, index))
    found = session.scalar(select(count).select_from(newest)) or 0
    return (
        found >= _MIN_SAMPLE_MATCHES and found * last > 2 * MAX_MATCHES_LISTED_BY_ID * _SAMPLE_SIZE
    )


def _build_last_number_query(model: type[Any], project_id: Any) -> Select[int]:
    other = aliased(model)
    return select(func.max(other.iid).label("iid")).where(other.project_id == project_id)


def _build_newest_query(
    model: type[Any], project_id: Any, last: Any, count: int
) -> Select[int, int]:
    """Return a query for the newest rows of a project, which have the highest numbers.

    The condition on the number ensures that Postgres uses an index even before it has statistics,
    instead of sorting all rows of a project.
    """
    return select(model.id, model.iid).where(
        model.project_id == project_id, model.iid > last - count
    )


def _search_on_sqlite(
    terms: str, projects: int | Select[int], index: SearchIndex, *, session: Session
) -> SearchResult:
    model, row = index.model, index.row_id
    # `+ 0` disables the project's index. Without statistics, the planner would read all rows of the
    # project and check each row for the words.
    project = model.project_id + 0
    is_inside = project == projects if isinstance(projects, int) else project.in_(projects)
    matching = (
        select(row).select_from(index.words_table).where(index.match_operand.op("MATCH")(terms))
    )
    few = matching.join(model, model.id == row).where(is_inside).limit(MAX_MATCHES_LISTED_BY_ID + 1)
    ids = session.scalars(few).all()
    if len(ids) <= MAX_MATCHES_LISTED_BY_ID:
        return SearchResult(condition=model.id.in_(ids), has_too_many_matches=False)
    # `+ 0` prevents SQLite from using the ID index, so that it reads the rows in list order and
    # does not sort them.
    return SearchResult(condition=(model.id + 0).in_(matching), has_too_many_matches=True)
