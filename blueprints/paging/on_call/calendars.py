"""Calendar feeds of on-call schedules at secret URLs (RFC 5545, RFC 7986).

icalendar is imported only when a calendar is built, because it uses 5 MiB of memory in each
process.
"""

from datetime import timedelta
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.types.validation import validate_query
from domain.paging.on_call import calendar_feeds
from domain.paging.on_call.actions import show_schedule
from domain.paging.on_call.calendar_feeds import CALENDAR_PAST_PERIOD, CalendarFeed
from domain.paging.on_call.schedule_plans import Period
from domain.paging.on_call.shifts import find_shifts_by_schedule
from domain.paging.on_call.types import CalendarQuery, OnCallSchedule, OnCallShift
from domain.projects.views import ProjectOrGroup
from web.access.decorators import open_to_anyone, permission_required
from web.api.openapi.view_descriptions import METADATA, ViewDescription
from web.http.endpoints import ApiClientBlueprint, ErrorFormat, NamespaceBlueprint
from web.http.public_urls import build_public_url
from web.http.unit_of_work import get_unit_of_work
from web.services import get_current_time, get_settings

_CALENDAR_FUTURE_PERIOD = timedelta(days=120)
_REFRESH_INTERVAL = timedelta(hours=1)
#: Headers for pages that show a secret URL.
NO_STORE_HEADERS = {"Cache-Control": "no-store"}


def build_calendar(calendar_feed: CalendarFeed, *, only_own: bool) -> bytes:
    """Return a calendar with shifts from the past month to the next four months.

    If `only_own` is true, the calendar contains only the owner's shifts.
    """
    from icalendar import Calendar  # noqa: PLC0415 - see above

    name, uid, url = _build_calendar_properties(calendar_feed)
    made = Calendar.new(prodid="-//Gatebell//On-call//EN", name=name, uid=uid, url=url)
    # The value type must be declared (RFC 7986 section 5.7).
    made.add("REFRESH-INTERVAL", _REFRESH_INTERVAL, parameters={"VALUE": "DURATION"})
    # The period covers whole days, so the calendar and its ETag do not change within a day.
    today = get_current_time().replace(hour=0, minute=0, second=0, microsecond=0)
    within = Period(today - CALENDAR_PAST_PERIOD, today + _CALENDAR_FUTURE_PERIOD)
    ids = [each.id for _, each in calendar_feed.schedules]
    shifts = find_shifts_by_schedule(get_unit_of_work(), ids, within)
    for holder, schedule in calendar_feed.schedules:
        for shift in shifts[schedule.id]:
            is_own = any(person.id == calendar_feed.user_id for person in shift.users)
            if is_own or (shift.on_call and not only_own):
                event = _build_event(holder, schedule, shift, is_named=not calendar_feed.is_own)
                made.add_component(event)
    content: bytes = made.to_ical()
    return content


def _build_calendar_properties(calendar_feed: CalendarFeed) -> tuple[str, str, str]:
    """Return a calendar's name, its ID, and the URL of its page."""
    if calendar_feed.is_own:
        url = build_public_url(url_for("own_on_call.index"))
        return "My on-call", f"on-call-of-{calendar_feed.user_id}@{_get_host()}", url
    ((holder, schedule),) = calendar_feed.schedules
    name = f"On-call: {schedule.name} ({holder.path})"
    return name, f"on-call-{schedule.id}@{_get_host()}", schedule.web_url


def _build_event(
    holder: ProjectOrGroup, schedule: OnCallSchedule, shift: OnCallShift, *, is_named: bool
) -> Any:
    """Return a calendar event for a shift.

    The title contains the users' names if `is_named` is true. Otherwise, it contains only the
    schedule's name and the path of its project or group.
    """
    from icalendar import Event  # noqa: PLC0415 - see above
    from icalendar.enums import TRANSP  # noqa: PLC0415 - see above

    names = ", ".join(each.name or each.username for each in shift.users)
    reasons = sorted({duty.source for duty in shift.on_call})
    event: Event = Event.new(
        uid=f"on-call-{schedule.id}-{shift.starts_at:%Y%m%dT%H%M%SZ}@{_get_host()}",
        summary=f"{names}: {schedule.name}" if is_named else f"{schedule.name} ({holder.path})",
        description=f"On call in {holder.path} ({', '.join(reasons)}).",
        start=shift.starts_at,
        end=shift.ends_at,
        stamp=schedule.created_at,
        url=schedule.web_url,
        # On-call shifts do not mark users as busy.
        transparency=TRANSP.TRANSPARENT,
    )
    return event


def _get_host() -> str:
    return urlsplit(get_settings().base_url).hostname or ""


on_call_calendars = NamespaceBlueprint(
    "on_call_calendars", __name__, below="on_call/schedules/<int:schedule_id>/calendar"
)
on_call_feeds = ApiClientBlueprint("on_call_feeds", __name__, errors=ErrorFormat.API)
_ETAG_BYTES = 16


@on_call_calendars.post("")
@permission_required("on_call_calendars.renew")
def renew(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Create a secret URL for the calendar and show it once.

    The previous URL stops working.
    """
    schedule = show_schedule(get_unit_of_work(), holder, schedule_id)
    token = calendar_feeds.renew_feed(get_unit_of_work(), holder, schedule_id)
    url = build_public_url(url_for("on_call_feeds.show", token=token))
    page = render_template(
        "on_call/calendar_address.html", holder=holder, schedule=schedule, url=url
    )
    return page, 200, NO_STORE_HEADERS


@on_call_calendars.post("/end")
@permission_required("on_call_calendars.end")
def end(holder: ProjectOrGroup, schedule_id: int) -> ResponseReturnValue:
    """Revoke the secret URL of the user's calendar."""
    calendar_feeds.revoke_feed(get_unit_of_work(), holder, schedule_id)
    flash("The calendar URL was revoked.")
    return redirect(url_for("on_call_schedules.show", **holder.url_values, schedule_id=schedule_id))


@on_call_feeds.get("/-/on_call/<token>.ics")
@ViewDescription(
    name="on_call_feeds.show",
    tag=METADATA,
    query=CalendarQuery,
    content_type="text/calendar",
    errors=(400, 404),
    is_conditional=True,
)
@open_to_anyone.with_changes(writes=True)
def show(token: str) -> Response:
    """Return the on-call calendar at a secret URL.

    `?shifts=mine` selects only the shifts of the URL's owner.
    """
    query = validate_query(CalendarQuery, dict(request.args.lists()))
    opened = calendar_feeds.find_feed_by_token(get_unit_of_work(), token)
    content = build_calendar(opened, only_own=opened.is_own or query.shifts == "mine")
    response = Response(content, content_type="text/calendar; charset=utf-8")
    response.set_etag(blake2b(content, digest_size=_ETAG_BYTES).hexdigest())
    response.cache_control.private = True
    response.cache_control.no_cache = True
    response.make_conditional(request.environ)
    return response
