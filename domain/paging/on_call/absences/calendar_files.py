"""Reads iCalendar files (RFC 5545) in a child process with limited resources.

A recurrence rule can take hours to expand, so the child process has time and memory limits.
icalendar and dateutil are loaded only in the child process.
"""

import json
import re
import resource
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from operator import itemgetter
from pathlib import Path
from subprocess import DEVNULL, PIPE, SubprocessError, run
from threading import BoundedSemaphore
from typing import Any, NamedTuple

from domain.core.errors import InvalidError, OverloadedError
from domain.core.time_zones import get_zone
from domain.paging.on_call.schedule_plans import Period

#: Maximum size of a calendar in bytes.
MAX_CALENDAR_BYTES = 1_048_576
#: Maximum number of events in the period that is read.
_MAX_EVENTS = 1_000
_MAX_TITLE_LENGTH = 200
#: Limits for the processor time and the memory of the child process, and for the duration of the
#: whole call.
_MAX_CPU_SECONDS, _MAX_MEMORY_BYTES, _TIMEOUT_SECONDS = 5, 1 << 30, 20.0
#: Slots for the calendars that each process reads at the same time, the time limit for waiting for
#: a slot, and the delay before a retry.
_SLOTS, _SLOT_TIMEOUT_SECONDS, _RETRY_AFTER_SECONDS = BoundedSemaphore(2), 20.0, 5
_ROOT = Path(__file__).parents[4]
_DAY = timedelta(days=1)
#: Maximum time before and after the period for which occurrences are computed.
_MAX_LENGTH = timedelta(days=400)
#: Supported frequencies. Events that repeat more often than daily are not absences.
_FREQUENCIES = frozenset({"DAILY", "WEEKLY", "MONTHLY", "YEARLY"})
_ZONE = re.compile(rb"(?ims)^BEGIN:VTIMEZONE\s*\n.*?^END:VTIMEZONE\s*?\n")
_ZONE_NAME = re.compile(rb"(?im)^TZID[^:\n]*:(.*)")


class CalendarEvent(NamedTuple):
    """An occurrence of a calendar event, with its start, end and title."""

    start: datetime
    end: datetime
    title: str
    #: True for days and for times without a time zone, which are in the time zone of the user.
    is_floating: bool


class CalendarContent(NamedTuple):
    """The events of a calendar in a period, and the number of events that could not be read."""

    events: tuple[CalendarEvent, ...]
    skipped_count: int


def read_calendar(
    content: bytes, period: Period, time_zone: str, *, min_length: timedelta, includes_free: bool
) -> CalendarContent:
    """Return the events of a calendar in a period, except canceled events.

    All-day events and events without a time zone are interpreted in `time_zone`. Events that are
    shorter than `min_length` are left out. Without `includes_free`, events that are marked as free
    are left out. Raise InvalidError for the `content` field if the calendar cannot be read, or
    OverloadedError if too many calendars are read at the same time.
    """
    if len(content) > MAX_CALENDAR_BYTES:
        raise _build_error(f"is larger than {MAX_CALENDAR_BYTES:,} bytes")
    if not all(each in content.upper() for each in (b"BEGIN:VCALENDAR", b"END:VCALENDAR")):
        raise _build_error("is not in the iCalendar format (.ics)")
    options = {
        "period": [period.start.isoformat(), period.end.isoformat()],
        "time_zone": time_zone,
        "min_seconds": min_length.total_seconds(),
        "includes_free": includes_free,
    }
    if not _SLOTS.acquire(timeout=_SLOT_TIMEOUT_SECONDS):
        message = "The server is busy with other calendars. Try again in a moment."
        raise OverloadedError(message, retry_after=_RETRY_AFTER_SECONDS)
    try:
        done = run(  # noqa: S603 - this module
            [sys.executable, "-m", __name__, json.dumps(options)],
            input=content,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=_ROOT,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode < 0:
            raise _build_error("takes too long to read")
        found = json.loads(done.stdout)
    except (OSError, SubprocessError) as error:
        raise _build_error("takes too long to read") from error
    except ValueError as error:
        raise _build_error("cannot be read") from error
    finally:
        _SLOTS.release()
    if "problem" in found:
        raise _build_error(found["problem"])
    return CalendarContent(
        events=tuple(
            CalendarEvent(datetime.fromisoformat(start), datetime.fromisoformat(end), *more)
            for start, end, *more in found["events"]
        ),
        skipped_count=found["skipped_count"],
    )


def _build_error(problem: str) -> InvalidError:
    return InvalidError(f"The calendar {problem}.", field="content")


def _expand_calendar(content: bytes, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the events of a calendar, or the problem with the calendar, as JSON."""
    lines = content.replace(b"\0", b"").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        read = _parse_calendars(lines)
    except ValueError as error:
        return {"problem": error.args[0]}
    events = [event for each in read for event in each.walk("VEVENT")]
    zone = get_zone(options["time_zone"])
    period = Period(*map(datetime.fromisoformat, options["period"]))
    moved, later = _find_overrides(events, zone)
    found, skipped = set(), 0
    for event in events:
        uid = "" if _is_override(event) else str(event.get("UID"))
        try:
            for source, start, end in _expand_event(event, period, zone, moved[uid], later[uid]):
                if not _is_excluded(source, start, end, options):
                    title = " ".join(str(source.get("SUMMARY", "")).split())[:_MAX_TITLE_LENGTH]
                    found.add((start.isoformat(), end.isoformat(), title, _is_floating(source)))
                if len(found) > _MAX_EVENTS:
                    until = f"{period.end:%Y-%m-%d}"
                    return {"problem": f"has more than {_MAX_EVENTS:,} events until {until}"}
        except Exception:  # noqa: BLE001 - one invalid event must not hide the other events
            skipped += 1
    return {"events": sorted(found), "skipped_count": skipped}


def _parse_calendars(lines: bytes) -> Sequence[Any]:
    """Return the calendars in a file.

    Ignore invalid definitions of time zones that have an IANA or Windows name. Raise ValueError
    with the problem if the file is invalid.
    """
    from icalendar import Calendar, Component  # noqa: PLC0415 - only in the child process
    from icalendar.timezone import tzp  # noqa: PLC0415 - only in the child process

    with suppress(ValueError):
        return Calendar.from_ical(lines, multiple=True)
    for definition in _ZONE.findall(lines):
        with suppress(ValueError):
            Component.from_ical(definition)
            continue
        name = b"".join(_ZONE_NAME.findall(definition.replace(b"\n ", b""))[:1])
        written = name.decode(errors="replace").strip()[:_MAX_TITLE_LENGTH]
        if tzp.timezone(written) is None:
            advice = "Use a time zone of the IANA database, such as Europe/Berlin"
            problem = f'contains an invalid definition of the time zone "{written}". {advice}'
            raise ValueError(problem)
        lines = lines.replace(definition, b"")
    try:
        return Calendar.from_ical(lines, multiple=True)
    except ValueError as error:
        raise ValueError("is not valid iCalendar") from error


def _is_excluded(event: Any, start: datetime, end: datetime, options: Mapping[str, Any]) -> bool:
    """Return whether an occurrence is left out: canceled, marked as free, or too short."""
    status, shown_as = (str(event.get(each)).upper() for each in ("STATUS", "TRANSP"))
    is_free = shown_as == "TRANSPARENT" and not options["includes_free"]
    is_short = (end - start).total_seconds() < options["min_seconds"]
    return status == "CANCELLED" or is_free or is_short


def _is_override(event: Any) -> bool:
    """Return whether an event replaces an occurrence of a series."""
    return hasattr(event.get("RECURRENCE-ID"), "dt")


def _is_all_day_event(event: Any) -> bool:
    return not isinstance(event.start, datetime)


def _is_floating(event: Any) -> bool:
    """Return whether the times of an event are local times of the user (RFC 5545 section 3.3.5)."""
    return _is_all_day_event(event) or event.start.tzinfo is None


def _find_overrides(
    events: Sequence[Any], zone: tzinfo
) -> tuple[Mapping[str, set[datetime]], Mapping[str, list[tuple[datetime, Any]]]]:
    """Return the start times of replaced occurrences, and the ranged overrides, by series UID.

    A ranged override also replaces all later occurrences (RFC 5545 section 3.2.13).
    """
    moved: dict[str, set[datetime]] = defaultdict(set)
    later: dict[str, list[tuple[datetime, Any]]] = defaultdict(list)
    found = [
        (_convert_to_utc(each["RECURRENCE-ID"].dt, zone), each)
        for each in filter(_is_override, events)
    ]
    for start, event in sorted(found, key=itemgetter(0)):
        uid, replaced = str(event.get("UID")), event["RECURRENCE-ID"]
        moved[uid].add(start)
        if str(replaced.params.get("RANGE")).upper() == "THISANDFUTURE":
            # An event without valid times is skipped, and replaces nothing.
            with suppress(Exception):
                later[uid].extend([(start, event)] if event.end >= event.start else [])
    return moved, later


def _expand_event(
    event: Any,
    period: Period,
    zone: tzinfo,
    without: set[datetime],
    later: Sequence[tuple[datetime, Any]],
) -> Iterator[tuple[Any, datetime, datetime]]:
    """Yield the occurrences of an event in a period, each with the event that describes it.

    `without` contains the starts of replaced occurrences. `later` contains the overrides that
    replace all occurrences after a start.
    """
    own_zone: tzinfo = zone if _is_all_day_event(event) else event.start.tzinfo or zone
    excluded = without | {_convert_to_utc(each, own_zone) for each in event.exdates}
    excluded_days = {each for each in event.exdates if not isinstance(each, datetime)}
    kinds = [(event, timedelta(0))] + [
        (each, _convert_to_local(each.start, own_zone) - _convert_to_local(at, own_zone))
        for at, each in later
    ]
    reach = max(abs(shift) + each.duration for each, shift in kinds)
    for local in _list_local_starts(event, period, reach, own_zone):
        start = local.replace(tzinfo=own_zone).astimezone(UTC)
        if start in excluded or local.date() in excluded_days:
            continue
        source, shift = kinds[sum(at < start for at, _ in later)]
        moved, place_zone = local + shift, zone if _is_all_day_event(source) else own_zone
        start = moved.replace(tzinfo=place_zone).astimezone(UTC)
        # An all-day event ends at midnight, even on a day on which the clocks change.
        length = source.end - source.start
        end = (
            _convert_to_utc(moved + length, place_zone)
            if _is_all_day_event(source)
            else start + length
        )
        if start < period.end and max(end, start) > period.start:
            yield source, start, min(end, period.end + _MAX_LENGTH)


def _list_local_starts(
    event: Any, period: Period, reach: timedelta, zone: tzinfo
) -> Iterator[datetime]:
    """Yield the local start times of occurrences that may be in a period.

    `reach` is the maximum time between the start of an occurrence and the period.
    """
    first, reach = _convert_to_local(event.start, zone), min(reach, _MAX_LENGTH)
    # The range includes another day on both sides to allow for differences between local times.
    lowest = _convert_to_local(period.start, zone) - reach - _DAY
    highest = _convert_to_local(period.end, zone) + reach + _DAY
    if not event.rrules:
        yield first
    for each in event.rrules:
        rule = _parse_rule(each, first, zone, lowest)
        # A series that has ended is not searched, because this would take as long as for a series
        # that continues.
        for local in rule.xafter(lowest, inc=True) if rule else ():
            if local > highest:
                break
            yield local
    for each in event.rdates:
        yield _convert_to_local(each[0], zone)


def _parse_rule(recurrence: Any, first: datetime, zone: tzinfo, lowest: datetime) -> Any:
    """Parse a recurrence rule for local times.

    Return None if the rule ends before `lowest`. Raise ValueError if the rule repeats more often
    than daily, or if its interval is 0.
    """
    from dateutil.rrule import rrulestr  # noqa: PLC0415 - only in the child process

    if recurrence["FREQ"][0] not in _FREQUENCIES or recurrence.get("INTERVAL") == [0]:
        raise ValueError(recurrence["FREQ"])
    rule = type(recurrence)(recurrence)
    if until := rule.get("UNTIL"):
        is_time = isinstance(until[0], datetime)
        rule["UNTIL"] = [
            _convert_to_local(until[0], zone)
            if is_time
            else datetime.combine(until[0], time(23, 59, 59))
        ]
        if rule["UNTIL"][0] < lowest:
            return None
    return rrulestr(rule.to_ical().decode(), dtstart=first)


def _convert_to_utc(value: date, zone: tzinfo) -> datetime:
    """Convert a time to UTC.

    Dates and times without a time zone are interpreted in `zone`.
    """
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def _convert_to_local(value: date, zone: tzinfo) -> datetime:
    return _convert_to_utc(value, zone).astimezone(zone).replace(tzinfo=None)


def limit_process_resources() -> None:
    """Limit the processor time and memory of the current process.

    A limit is skipped if a lower limit already applies, or if the system does not support limits.
    """
    limits = {resource.RLIMIT_CPU: _MAX_CPU_SECONDS, resource.RLIMIT_AS: _MAX_MEMORY_BYTES}
    for which, limit in limits.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(which, (limit, limit))


if __name__ == "__main__":
    limit_process_resources()
    print(json.dumps(_expand_calendar(sys.stdin.buffer.read(), json.loads(sys.argv[1]))))  # noqa: T201
