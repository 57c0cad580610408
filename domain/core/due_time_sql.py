"""SQL conditions for due rows, which the background worker checks repeatedly.

Each condition is part of a statement that is compiled once (`web/jobs/scheduler.py`), so times are
parameters. If SQLite compares a parameter with the condition of a partial index, it prepares the
statement again for each new value. Such values are therefore literals in the statement.
"""

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, ColumnElement, bindparam, literal

from models.base import UTCDateTime

#: A time, or the SQL parameter for a time.
Moment = datetime | ColumnElement[datetime]

#: Offsets from the current time, by the name of the parameter.
_PARAMETER_OFFSETS: dict[str, timedelta] = {}


def _build_time_parameter(after: timedelta) -> ColumnElement[datetime]:
    name = f"after_{after.total_seconds():.0f}"
    _PARAMETER_OFFSETS[name] = after
    return bindparam(name, type_=UTCDateTime())


NOW = _build_time_parameter(timedelta(0))


def build_time_from_now(now: Moment, by: timedelta) -> Moment:
    """Return the time that is a given duration from now."""
    return now + by if isinstance(now, datetime) else _build_time_parameter(by)


def build_milliseconds_from_now(now: Moment, by: timedelta = timedelta(0)) -> ColumnElement[int]:
    """Return the time that is a given duration from now, in milliseconds since 1970."""
    if isinstance(now, datetime):
        return literal(_to_milliseconds(now + by), BigInteger())
    return bindparam(f"{_build_time_parameter(by).key}_ms", type_=BigInteger())


def compute_time_parameters(now: datetime) -> dict[str, object]:
    """Return the values of all time parameters, by name."""
    found = {name: now + after for name, after in _PARAMETER_OFFSETS.items()}
    return {**found, **{f"{name}_ms": _to_milliseconds(each) for name, each in found.items()}}


def _to_milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)
