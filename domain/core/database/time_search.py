"""Finds rows by time in tables without an index on the time column.

The IDs of such a table increase with the time, so a binary search finds the first ID of a period.
The cost hardly depends on the number of rows.
"""

from collections.abc import Sequence
from datetime import datetime
from operator import ge, lt
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, bindparam, text
from sqlalchemy.orm import InstrumentedAttribute, Session

#: Start and end of a period, each of which may be open.
TimeBounds = tuple[datetime | None, datetime | None]
OPEN_BOUNDS: TimeBounds = (None, None)
#: Common table expression for the first ID in each part of a period, and the ID that follows the
#: part.
_PARTS = """
WITH RECURSIVE search (part, since, low, high) AS (
  SELECT part, since, CAST(0 AS BIGINT), (SELECT coalesce(max(id), 0) + 1 FROM {table})
  FROM ({starts}) AS starts
  UNION ALL
  SELECT part, since, CASE WHEN {is_earlier} THEN (low + high) / 2 + 1 ELSE low END,
    CASE WHEN {is_earlier} THEN high ELSE (low + high) / 2 END
  FROM search WHERE low < high
), parts AS (
  SELECT part, low AS first, coalesce(lead(low) OVER (ORDER BY part),
    (SELECT max(id) + 1 FROM {table})) AS following
  FROM search WHERE low = high
)
"""
_IS_EARLIER = """(SELECT {column} FROM {table} WHERE id >= (low + high) / 2
  ORDER BY id LIMIT 1) < since"""


def build_time_search(
    column: InstrumentedAttribute[datetime], starts: Sequence[datetime]
) -> tuple[str, list[BindParameter[datetime]]]:
    """Return the table expression `parts`, and its parameters.

    A row of `parts` contains the index of a start time in `starts`, the first ID at or after this
    start time, and the first ID at or after the next start time.
    """
    names = {"table": column.class_.__tablename__, "column": column.key}
    union = " UNION ALL ".join(
        f"SELECT {part} AS part, :since_{part} AS since" for part in range(len(starts))
    )
    times = [bindparam(f"since_{part}", start, column.type) for part, start in enumerate(starts)]
    return _PARTS.format(starts=union, is_earlier=_IS_EARLIER.format(**names), **names), times


def find_id_bounds(
    column: InstrumentedAttribute[datetime], times: TimeBounds, *, session: Session
) -> tuple[int | None, ...]:
    """Return the first IDs at or after the start and the end of a period."""

    def find_first_id(moment: datetime) -> int:
        query, starts = build_time_search(column, [moment])
        first = text(f"{query}SELECT first FROM parts").bindparams(*starts)  # noqa: S608 - constants
        return int(session.execute(first).scalar_one())

    return tuple(None if each is None else find_first_id(each) for each in times)


def build_range_conditions(
    column: ColumnElement[Any] | InstrumentedAttribute[Any], bounds: Sequence[Any]
) -> list[ColumnElement[bool]]:
    """Return the conditions for values from a start to an end, each of which may be None."""
    compared = zip((ge, lt), bounds, strict=True)
    return [compare(column, value) for compare, value in compared if value is not None]
