"""Calendars of on-call schedules to subscribe to, each under a secret address."""

from hashlib import blake2b

from flask import Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.on_call import feeds
from domain.on_call.schedules import get_schedule
from domain.projects.views import ProjectView
from domain.types.reading import read_query
from web.access.marks import open_to_anyone, project_member
from web.api.description.described import METADATA, Description, described
from web.api.schemas.on_call.on_call_schedules import OnCallCalendarQuery
from web.extensions import db
from web.http.endpoints import ErrorFormat, MachineBlueprint, PageBlueprint
from web.http.public_urls import public_url
from web.on_call.audit import record_calendar_change
from web.on_call.icalendar_feed import calendar_of
from web.services import now, services

on_call_calendars = PageBlueprint(
    "on_call_calendars",
    __name__,
    url_prefix="/<names:project_path>/-/on_call/schedules/<int:schedule_id>/calendar",
)
on_call_feeds = MachineBlueprint("on_call_feeds", __name__, errors=ErrorFormat.API)
_ETAG_BYTES = 16


@on_call_calendars.post("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def renew(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """Show a new secret address of the calendar, once; the former one ends."""
    schedule = get_schedule(project.id, schedule_id, session=db.session())
    token = feeds.renew_feed(
        schedule.id,
        current_user.id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    record_calendar_change("address created", project, schedule)
    url = public_url(url_for("on_call_feeds.show", token=token))
    page = render_template(
        "on_call/calendar_address.html", project=project, schedule=schedule, url=url
    )
    return page, 200, {"Cache-Control": "no-store"}


@on_call_calendars.post("/end")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def end(project: ProjectView, schedule_id: int) -> ResponseReturnValue:
    """End the secret address of the user's calendar."""
    schedule = get_schedule(project.id, schedule_id, session=db.session())
    if feeds.end_feed(schedule.id, current_user.id, session=db.session()):
        record_calendar_change("address ended", project, schedule)
    flash("The calendar address was revoked.")
    return redirect(
        url_for("on_call_schedules.show", project_path=project.path, schedule_id=schedule_id)
    )


@on_call_feeds.get("/-/on_call/<token>.ics")
@described(
    Description(
        name="on_call_feeds.show",
        tag=METADATA,
        query=OnCallCalendarQuery,
        content_type="text/calendar",
        errors=(400, 404),
        is_conditional=True,
    )
)
@open_to_anyone.but(writes=True)
def show(token: str) -> Response:
    """Return the calendar of a secret URL, with all shifts, or with your own by `?shifts=mine`."""
    query = read_query(OnCallCalendarQuery, dict(request.args.lists()))
    opened = feeds.open_feed(token, session=db.session(), keyring=services().keyring, now=now())
    content = calendar_of(opened, only_own=query.shifts == "mine")
    response = Response(content, content_type="text/calendar; charset=utf-8")
    response.set_etag(blake2b(content, digest_size=_ETAG_BYTES).hexdigest())
    response.cache_control.private = True
    response.cache_control.no_cache = True
    response.make_conditional(request.environ)
    return response
