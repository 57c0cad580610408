"""Merges rows from several tables into one chronological list, in pages with a bounded cost.

Each source is read in its own order, from the end of the previous page. Therefore, each item
appears on exactly one page, even if the clocks of hosts differ or rows have the same time.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from domain.core.database.pagination import MAX_ID
from domain.core.errors import QueryError
from domain.core.types.pagination import ListPage
from domain.incidents.timelines.types import TimelineItem, TimelineQuery

#: Position of an item in its source, as numbers that only increase or only decrease.
TimelinePosition = tuple[int, ...]
#: Maximum number of rows that are read from a source for a page. Several rows may be joined into
#: one line.
MAX_ROWS_PER_SOURCE = 200
_CURSOR_PART = re.compile(r"([a-z])([0-9]{1,19})(?:_([0-9]{1,19}))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class TimelineRow:
    """A timeline item with its position in its source."""

    position: TimelinePosition
    item: TimelineItem
    #: Key for joining adjacent rows with the same key, or None if the row is never joined.
    joins: Hashable | None = None


@dataclass(frozen=True, kw_only=True)
class RowRange:
    """A request for the next rows of a source: their start position, maximum number and order."""

    #: Position of the last row that was read, or None at the beginning.
    following: TimelinePosition | None
    most: int
    is_oldest_first: bool


@dataclass(frozen=True, kw_only=True)
class TimelineSource:
    """A source of rows for a timeline."""

    #: Letter that identifies the source in a timeline.
    letter: str
    #: Number of components in a position.
    numbers: int
    read: Callable[[RowRange], Sequence[TimelineRow]]


def build_source_from_rows(letter: str, rows: Sequence[TimelineRow]) -> TimelineSource:
    """Return a timeline source for rows that are already loaded.

    The positions of the rows must have two components, as returned by `build_position`.
    """

    def read(part: RowRange) -> Sequence[TimelineRow]:
        oldest_first, after = part.is_oldest_first, part.following
        ordered = sorted(rows, key=lambda each: each.position, reverse=not oldest_first)
        return [
            each
            for each in ordered
            if after is None or (each.position > after if oldest_first else each.position < after)
        ][: part.most]

    return TimelineSource(letter=letter, numbers=2, read=read)


def build_position(moment: datetime, number: int) -> TimelinePosition:
    """Return the position of an item from its time and its number."""
    return (moment - _EPOCH) // _MICROSECOND, number


def merge_sources(
    sources: Sequence[TimelineSource], query: TimelineQuery
) -> ListPage[TimelineItem]:
    """Return a page that is merged from all sources.

    Raise QueryError if the cursor is not valid.
    """
    is_oldest_first = query.sort == "asc"
    positions = dict(_parse_cursor(query.cursor, sources))
    waiting: dict[str, list[TimelineRow]] = {}
    for each in sources:
        part = RowRange(
            following=positions.get(each.letter),
            most=MAX_ROWS_PER_SOURCE + 1,
            is_oldest_first=is_oldest_first,
        )
        waiting[each.letter] = [*each.read(part)][::-1]
    truncated = {letter for letter, rows in waiting.items() if len(rows) > MAX_ROWS_PER_SOURCE}
    lines: list[list[TimelineRow]] = []
    while any(waiting.values()):
        letter = _find_next_source(waiting, is_oldest_first=is_oldest_first)
        row = waiting[letter][-1]
        # Unread rows of this source might come before the rows of other sources.
        is_unknown = letter in truncated and len(waiting[letter]) == 1
        joins = bool(lines) and row.joins is not None and lines[-1][-1].joins == row.joins
        if is_unknown or (not joins and len(lines) == query.page_size):
            cursor = ".".join(f"{key}{'_'.join(map(str, at))}" for key, at in positions.items())
            return ListPage(items=list(map(_merge_timeline_rows, lines)), next_cursor=cursor)
        waiting[letter].pop()
        positions[letter] = row.position
        if joins:
            lines[-1].append(row)
        else:
            lines.append([row])
    return ListPage(items=list(map(_merge_timeline_rows, lines)))


def _find_next_source(
    waiting: Mapping[str, Sequence[TimelineRow]], *, is_oldest_first: bool
) -> str:
    """Return the letter of the source that contains the next row.

    If several rows have the same time, the row from the earlier source counts as older.
    """
    letters = [letter for letter, rows in waiting.items() if rows]
    if is_oldest_first:
        return min(letters, key=lambda letter: waiting[letter][-1].item.at)
    return max(reversed(letters), key=lambda letter: waiting[letter][-1].item.at)


def _merge_timeline_rows(rows: Sequence[TimelineRow]) -> TimelineItem:
    first = rows[0].item
    if len(rows) == 1:
        return first
    times = [row.item.at for row in rows]
    alerts = dict.fromkeys(number for row in rows for number in row.item.alerts)
    return first.model_copy(
        update={
            "at": min(times),
            "until": max(times),
            "reports": tuple(report for row in rows for report in row.item.reports),
            "alerts": tuple(alerts),
        }
    )


def _parse_cursor(
    text: str, sources: Sequence[TimelineSource]
) -> Sequence[tuple[str, TimelinePosition]]:
    if not text:
        return ()
    numbers = {each.letter: each.numbers for each in sources}
    found = []
    for part in text.split("."):
        read = _CURSOR_PART.fullmatch(part)
        position = tuple(int(each) for each in read.groups()[1:] if each) if read else ()
        letter = read[1] if read else ""
        if len(position) != numbers.pop(letter, -1) or max(position) > MAX_ID:
            message = "This page of the list does not exist. Go to the first page."
            raise QueryError(message, field="cursor")
        found.append((letter, position))
    return found
