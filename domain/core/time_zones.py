"""Time zones by their names in the IANA database, and wall times in them.

Where the host has no zone files, `zoneinfo` reads those of the package `tzdata`.
"""

from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from domain.core.errors import InvalidError

#: Local times exist around each moment between these.
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
#: No places: the zone of the host, and files that are no zones.
_NO_PLACES = frozenset({"localtime", "Factory", "posixrules"})


@cache
def zone_names() -> tuple[str, ...]:
    """Return the names of all time zones in order."""
    return tuple(sorted(available_timezones() - _NO_PLACES))


@cache
def _by_folded_name() -> dict[str, str]:
    return {name.casefold(): name for name in zone_names()}


def check_zone(name: str) -> str:
    """Return the name of a zone in the database's spelling, or raise InvalidError."""
    found = _by_folded_name().get(name.strip().casefold())
    if found is None:
        message = "Choose a time zone of the IANA database, such as Europe/Berlin or UTC."
        raise InvalidError(message, field="time_zone")
    return found


@cache
def zone(name: str) -> ZoneInfo:
    """Return a stored zone; one that the database has no longer counts as UTC."""
    return ZoneInfo(_by_folded_name().get(name.casefold(), "UTC"))


def local_time(moment: datetime, time_zone: str) -> str:
    """Return a moment in somebody's time zone: `2026-11-23 14:05 +01:00`, or with `UTC`."""
    local = moment.astimezone(zone(time_zone))
    return f"{local:%Y-%m-%d %H:%M} {offset_of(local)}"


def offset_of(local: datetime) -> str:
    """Return how a local time differs from UTC: `+01:00`, or `UTC` if it does not."""
    return "UTC" if not local.utcoffset() else local.isoformat(timespec="seconds")[19:]


def instant(local: datetime, place: ZoneInfo) -> datetime:
    """Return the moment of a wall time, in UTC.

    A wall time that occurs twice is the first of both. One that does not exist is read with the
    offset before the change, so that 02:30 becomes 03:30 (RFC 5545 section 3.3.5).
    """
    return local.replace(tzinfo=place, fold=0).astimezone(UTC)


def wall_time(moment: datetime, place: ZoneInfo) -> datetime:
    """Return the wall time of a moment, without a zone."""
    return moment.astimezone(place).replace(tzinfo=None, fold=0)
