"""The shifts of an on-call schedule as a calendar (RFC 5545, RFC 7986).

icalendar is loaded with the first calendar: it takes 5 MiB of each process.
"""

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import url_for

from domain.on_call.feeds import OpenedFeed
from domain.on_call.restrictions import Period
from domain.on_call.shifts import Shift, shifts_of
from web.extensions import db
from web.http.public_urls import public_url
from web.services import now, settings

if TYPE_CHECKING:
    from icalendar import Event

_PAST, _AHEAD = timedelta(days=30), timedelta(days=120)
_REFRESHED_EVERY = timedelta(hours=1)
_DAY = timedelta(days=1)


def calendar_of(opened: OpenedFeed, *, only_own: bool) -> bytes:
    """Return the shifts of the last month and the next four, those of all or of the owner alone."""
    schedule, project = opened.schedule, opened.project
    page = public_url(
        url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule.id)
    )
    from icalendar import Calendar  # noqa: PLC0415 - see above

    made = Calendar.new(
        prodid="-//Gatebell//On-call//EN",
        name=f"On-call: {schedule.name} ({project.path})",
        uid=f"on-call-{schedule.id}@{_host()}",
        url=page,
    )
    # Its type has to be said (RFC 7986 section 5.7).
    made.add("REFRESH-INTERVAL", _REFRESHED_EVERY, parameters={"VALUE": "DURATION"})
    for shift in _shifts(opened, only_own=only_own):
        made.add_component(_event(opened, shift, page))
    content: bytes = made.to_ical()
    return content


def _shifts(opened: OpenedFeed, *, only_own: bool) -> list[Shift]:
    # Whole days: within a day the calendar is the same, and its ETag.
    moment = now()
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    start = max(today - _PAST, opened.schedule.created_at)
    within = Period(start, today + _AHEAD)
    found = shifts_of(opened.schedule.id, within, session=db.session(), now=moment)
    return [
        each
        for each in found
        if each.duties
        and (not only_own or any(person.id == opened.user_id for person in each.people))
    ]


def _event(opened: OpenedFeed, shift: Shift, page: str) -> "Event":
    from icalendar import Event  # noqa: PLC0415 - see above
    from icalendar.enums import TRANSP  # noqa: PLC0415 - see above

    names = ", ".join(each.name or each.username for each in shift.people)
    reasons = sorted({duty.source.value for duty in shift.duties})
    event: Event = Event.new(
        uid=f"on-call-{opened.schedule.id}-{shift.start:%Y%m%dT%H%M%SZ}@{_host()}",
        summary=f"{names}: {opened.schedule.name}",
        description=f"On call by {', '.join(reasons)}, as of {opened.project.path}.",
        start=shift.start,
        end=shift.end,
        stamp=opened.schedule.created_at,
        url=page,
        # Being on call makes nobody busy.
        transparency=TRANSP.TRANSPARENT,
    )
    return event


def _host() -> str:
    return urlsplit(settings().base_url).hostname or ""
