"""Calendars of on-call schedules to subscribe to, each under a secret address."""

from hashlib import blake2b

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.on_call import feeds
from domain.on_call.actions import show_schedule
from domain.on_call.types import CalendarQuery
from domain.projects.views import ProjectView
from domain.types.reading import read_query
from web.access.marks import open_to_anyone, permitted
from web.api.description.described import METADATA, Description
from web.http.endpoints import ErrorFormat, MachineBlueprint, PageBlueprint
from web.http.public_urls import public_url
from web.http.work import work
from web.on_call.icalendar_feed import calendar_of

on_call_calendars = PageBlueprint(
    "on_call_calendars",
    __name__,
    url_prefix="/<names:project_path>/-/on_call/schedules/<int:schedule_id>/calendar",
)
on_call_feeds = MachineBlueprint("on_call_feeds", __name__, errors=ErrorFormat.API)
_ETAG_BYTES = 16


@on_call_calendars.post("")
@permitted("on_call_calendars.renew")
def renew(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Show a new secret address of the calendar, once; the former one ends."""
    schedule = show_schedule(work(), project, schedule_id)
    token = feeds.renew_feed(work(), project, schedule_id)
    url = public_url(url_for("on_call_feeds.show", token=token))
    page = render_template(
        "on_call/calendar_address.html", project=project, schedule=schedule, url=url
    )
    return page, 200, {"Cache-Control": "no-store"}


@on_call_calendars.post("/end")
@permitted("on_call_calendars.end")
def end(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """End the secret address of the user's calendar."""
    feeds.end_feed(work(), project, schedule_id)
    flash("The calendar address was revoked.")
    return redirect(
        url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
    )


@on_call_feeds.get("/-/on_call/<token>.ics")
@Description(
    name="on_call_feeds.show",
    tag=METADATA,
    query=CalendarQuery,
    content_type="text/calendar",
    errors=(400, 404),
    is_conditional=True,
)
@open_to_anyone.but(writes=True)
def show(token: str) -> Response:
    """Return the calendar of a secret URL, with all shifts, or with your own by `?shifts=mine`."""
    query = read_query(CalendarQuery, dict(request.args.lists()))
    opened = feeds.open_feed(work(), token)
    content = calendar_of(opened, only_own=query.shifts == "mine")
    response = Response(content, content_type="text/calendar; charset=utf-8")
    response.set_etag(blake2b(content, digest_size=_ETAG_BYTES).hexdigest())
    response.cache_control.private = True
    response.cache_control.no_cache = True
    response.make_conditional(request.environ)
    return response
