"""Checks the times that people give for overrides, swaps and lists of shifts."""

from datetime import datetime, timedelta

from domain.errors import InvalidError
from domain.on_call.restrictions import Period
from domain.time_zones import EARLIEST, LATEST

#: Of an override, or of one side of a swap.
LONGEST = timedelta(days=366)


def checked_period(
    start: datetime, end: datetime, *, longest: timedelta = LONGEST, fields: tuple[str, str]
) -> Period:
    """Return a period, or raise InvalidError for one that is empty, too long or too far away."""
    start_field, end_field = fields
    if not (start >= EARLIEST and end <= LATEST):
        message = f"Times must be between the years {EARLIEST.year} and {LATEST.year}."
        raise InvalidError(message, field=start_field if start < EARLIEST else end_field)
    if end <= start:
        message = "The end must be after the start."
        raise InvalidError(message, field=end_field)
    if end - start > longest:
        message = f"A period can be at most {longest.days} days long."
        raise InvalidError(message, field=end_field)
    return Period(start, end)


def check_is_not_over(during: Period, *, field: str, now: datetime) -> None:
    """Raise InvalidError for a period that is over: past shifts stay as they were."""
    if during.end <= now:
        message = "This time is in the past. Choose an end in the future."
        raise InvalidError(message, field=field)
