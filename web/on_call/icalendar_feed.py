"""The shifts of an on-call schedule as a calendar (RFC 5545, RFC 7986).

icalendar is loaded with the first calendar: it takes 5 MiB of each process.
"""

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from domain.on_call.feeds import OpenedFeed
from domain.on_call.plans import Period
from domain.on_call.shifts import shifts_of
from domain.on_call.types import OnCallShift
from web.http.work import work
from web.services import now, settings

if TYPE_CHECKING:
    from icalendar import Event

_PAST, _AHEAD = timedelta(days=30), timedelta(days=120)
_REFRESHED_EVERY = timedelta(hours=1)
_DAY = timedelta(days=1)


def calendar_of(opened: OpenedFeed, *, only_own: bool) -> bytes:
    """Return the shifts of the last month and the next four, those of all or of the owner alone."""
    schedule, project = opened.schedule, opened.project
    from icalendar import Calendar  # noqa: PLC0415 - see above

    made = Calendar.new(
        prodid="-//Gatebell//On-call//EN",
        name=f"On-call: {schedule.name} ({project.path})",
        uid=f"on-call-{schedule.id}@{_host()}",
        url=schedule.web_url,
    )
    # Its type has to be said (RFC 7986 section 5.7).
    made.add("REFRESH-INTERVAL", _REFRESHED_EVERY, parameters={"VALUE": "DURATION"})
    for shift in _shifts(opened, only_own=only_own):
        made.add_component(_event(opened, shift))
    content: bytes = made.to_ical()
    return content


def _shifts(opened: OpenedFeed, *, only_own: bool) -> list[OnCallShift]:
    # Whole days: within a day the calendar is the same, and its ETag.
    today = now().replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(today - _PAST, opened.schedule.created_at)
    within = Period(start, today + _AHEAD)
    found = shifts_of(work(), opened.schedule.id, within)
    return [
        each
        for each in found
        if each.on_call
        and (not only_own or any(person.id == opened.user_id for person in each.users))
    ]


def _event(opened: OpenedFeed, shift: OnCallShift) -> "Event":
    from icalendar import Event  # noqa: PLC0415 - see above
    from icalendar.enums import TRANSP  # noqa: PLC0415 - see above

    names = ", ".join(each.name or each.username for each in shift.users)
    reasons = sorted({duty.source for duty in shift.on_call})
    event: Event = Event.new(
        uid=f"on-call-{opened.schedule.id}-{shift.starts_at:%Y%m%dT%H%M%SZ}@{_host()}",
        summary=f"{names}: {opened.schedule.name}",
        description=f"On call by {', '.join(reasons)}, as of {opened.project.path}.",
        start=shift.starts_at,
        end=shift.ends_at,
        stamp=opened.schedule.created_at,
        url=opened.schedule.web_url,
        # Being on call makes nobody busy.
        transparency=TRANSP.TRANSPARENT,
    )
    return event


def _host() -> str:
    return urlsplit(settings().base_url).hostname or ""
