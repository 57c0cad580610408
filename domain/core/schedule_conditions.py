"""What is due, in SQL: conditions for which the background worker asks again and again.

Each is part of a statement that is compiled once (`web/jobs/scheduler.py`), so the moments are
parameters of it. SQLite prepares a statement anew for each value that it compares with the
condition of a partial index, so such values are written into the statement.
"""

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, ColumnElement, bindparam, literal

from models.base import UTCDateTime

#: A moment, or the parameter that stands for it.
Moment = datetime | ColumnElement[datetime]

#: How far after now the parameters are, by name.
_AFTER: dict[str, timedelta] = {}


def _parameter(after: timedelta) -> ColumnElement[datetime]:
    name = f"after_{after.total_seconds():.0f}"
    _AFTER[name] = after
    return bindparam(name, type_=UTCDateTime())


NOW = _parameter(timedelta(0))


def later(now: Moment, by: timedelta) -> Moment:
    """Return the moment that is so much later than now."""
    return now + by if isinstance(now, datetime) else _parameter(by)


def in_milliseconds(now: Moment, by: timedelta = timedelta(0)) -> ColumnElement[int]:
    """Return the moment that is so much later than now, in milliseconds since 1970."""
    if isinstance(now, datetime):
        return literal(_milliseconds(now + by), BigInteger())
    return bindparam(f"{_parameter(by).key}_ms", type_=BigInteger())


def moments(now: datetime) -> dict[str, object]:
    """Return the values of all parameters."""
    found = {name: now + after for name, after in _AFTER.items()}
    return {**found, **{f"{name}_ms": _milliseconds(each) for name, each in found.items()}}


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)
