"""Time zones by their names in the IANA database, and local times.

If the host has no time zone files, `zoneinfo` reads the files of the `tzdata` package.
"""

from datetime import UTC, datetime, time
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo, available_timezones

from domain.core.errors import InvalidError

#: Range of supported times.
EARLIEST_TIME, LATEST_TIME = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
#: Names that users cannot choose: the host's own time zone, and files that are not time zones.
_EXCLUDED_NAMES = frozenset({"localtime", "Factory", "posixrules"})


@cache
def list_zone_names() -> tuple[str, ...]:
    """Return the names of all time zones in alphabetical order."""
    return tuple(sorted(available_timezones() - _EXCLUDED_NAMES))


@cache
def _list_canonical_names() -> tuple[str, ...]:
    """Return `UTC` and the zones of inhabited regions in alphabetical order, without old names."""
    table = (files("tzdata") / "zoneinfo" / "zone.tab").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    return ("UTC", *sorted({row[2] for row in rows} & set(list_zone_names())))


def list_zone_choices(now: datetime) -> list[tuple[str, str]]:
    """Return the names of the time zones that users choose from, each with its current offset."""
    return [(name, format_zone_offset(name, now)) for name in _list_canonical_names()]


def format_zone_offset(name: str, now: datetime) -> str:
    """Return the current offset of a time zone, such as `UTC+01:00`."""
    offset = f"{now.astimezone(get_zone(name)):%z}"
    return f"UTC{offset[:3]}:{offset[3:5]}"


@cache
def _map_casefolded_names() -> dict[str, str]:
    return {name.casefold(): name for name in list_zone_names()}


def normalize_zone_name(name: str) -> str:
    """Return the name of a time zone in the spelling of the IANA database.

    Raise InvalidError if there is no time zone with this name.
    """
    found = _map_casefolded_names().get(name.strip().casefold())
    if found is None:
        message = "Choose a time zone from the IANA database, such as Europe/Berlin or UTC."
        raise InvalidError(message, field="time_zone")
    return found


@cache
def get_zone(name: str) -> ZoneInfo:
    """Return the time zone with a stored name, or UTC if the name is no longer in the database."""
    return ZoneInfo(_map_casefolded_names().get(name.casefold(), "UTC"))


def format_local_time(moment: datetime, time_zone: str) -> str:
    """Return a time in a user's time zone, such as `2026-11-23 14:05 +01:00`.

    An offset of zero is written as `UTC`.
    """
    local = moment.astimezone(get_zone(time_zone))
    return f"{local:%Y-%m-%d %H:%M} {format_utc_offset(local)}"


def format_period(start: datetime | None, end: datetime | None, time_zone: str) -> str:
    """Return a period in a user's time zone, such as `2026-11-23 14:00 to 15:00 +01:00`."""
    if start is None or end is None:
        word, only = ("from", start) if start else ("until", end)
        return f"{word} {format_local_time(only, time_zone)}" if only else ""
    local, local_end = (each.astimezone(get_zone(time_zone)) for each in (start, end))
    if local.time() == local_end.time() == time() and (local_end - local).days == 1:
        return f"{local:%Y-%m-%d} {format_utc_offset(local)}"
    day = "" if local.date() == local_end.date() else f"{local_end:%Y-%m-%d} "
    return f"{local:%Y-%m-%d %H:%M} to {day}{local_end:%H:%M} {format_utc_offset(local_end)}"


def format_utc_offset(local_time: datetime) -> str:
    """Return the offset of a local time from UTC, such as `+01:00`, or `UTC` for no offset."""
    return "UTC" if not local_time.utcoffset() else local_time.isoformat(timespec="seconds")[19:]


def convert_to_utc(local_time: datetime, time_zone: ZoneInfo) -> datetime:
    """Convert a local time to UTC.

    For a local time that occurs twice, the first occurrence is used. A nonexistent local time is
    interpreted with the offset before the clock change, so that 02:30 becomes 03:30 (RFC 5545
    section 3.3.5).
    """
    return local_time.replace(tzinfo=time_zone, fold=0).astimezone(UTC)


def convert_to_local(moment: datetime, time_zone: ZoneInfo) -> datetime:
    """Convert a time to local time, as a naive datetime."""
    return moment.astimezone(time_zone).replace(tzinfo=None, fold=0)
