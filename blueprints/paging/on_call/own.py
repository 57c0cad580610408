"""The page /-/on_call: the user's shifts in all projects, and cover for them."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.on_call.calendars import NEVER_STORED
from blueprints.paging.on_call.schedule_page import names_who_cover, zone_of
from domain.core.errors import NotFoundError
from domain.paging.contacts import actions as contact_actions
from domain.paging.contacts.types import ContactQuery
from domain.paging.on_call import feeds
from domain.paging.on_call.my_on_call import cover_shifts, preview_cover, show_own_on_call
from domain.paging.on_call.own_types import CoverQuery, OnCallCover, OwnOnCallQuery
from forms.on_call import CoverForm
from web.access.decorators import get_current_user, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.form_pages import form_page
from web.pages.list_query import list_query
from web.services import now, settings

own_on_call = PageBlueprint("own_on_call", __name__, url_prefix="/-/on_call")
_WEEKS = 6


@own_on_call.get("")
@signed_in
def index() -> ResponseReturnValue:
    """Show the user's schedules, next turns, recent pages and contacts."""
    list_query()
    found = show_own_on_call(work(), OwnOnCallQuery(weeks=_WEEKS))
    return render_template(
        "on_call/own.html",
        found=found,
        weeks=_WEEKS,
        turns=sorted(
            ((turn, each) for each in found.schedules for turn in each.turns),
            key=lambda pair: (pair[0].starts_at, pair[0].ends_at, pair[1].schedule_id),
        ),
        contacts=contact_actions.list_contacts(work(), ContactQuery(per_page=100)).items,
        preferences=contact_actions.show_preferences(work()),
        sends_mail=bool(settings().mail_url),
        feed=feeds.find_feed(None, get_current_user().id, session=db.session(), now=now()),
    )


@own_on_call.post("/calendar")
@signed_in
def renew_calendar() -> ResponseReturnValue:
    """Show a new secret address of the user's calendar once; the previous address stops working."""
    made = feeds.renew_own_calendar(work())
    page = render_template("on_call/own_calendar_address.html", url=made.url)
    return page, 200, NEVER_STORED


@own_on_call.post("/calendar/end")
@signed_in
def end_calendar() -> ResponseReturnValue:
    """Revoke the secret address of the user's calendar."""
    with refusals_shown(NotFoundError):
        feeds.end_own_calendar(work())
        flash("The calendar address was revoked.")
    return redirect(url_for("own_on_call.index"))


@own_on_call.route("/cover", methods=["GET", "POST"])
@signed_in
def cover() -> ResponseReturnValue:
    """Let another user cover the user's shifts, after a preview of the affected shifts."""
    given = list_query("schedule", "turn")
    schedules = show_own_on_call(work(), OwnOnCallQuery(weeks=_WEEKS)).schedules
    form = CoverForm(
        schedules=schedules,
        names=names_who_cover(schedules),
        time_zone=zone_of(schedules),
        what=given.get("turn") or given.get("schedule"),
    )
    preview = form.carry_out(lambda: _carried_out(form)) if form.is_submitted() else None
    if isinstance(preview, str):
        flash(preview)
        return redirect(url_for("own_on_call.index"))
    return form_page("on_call/cover.html", form, preview=preview, zone=zone_of(schedules))


def _carried_out(form: CoverForm) -> OnCallCover | str:
    """Return a preview of the cover, or carry it out if the page has shown the preview."""
    wanted = form.cover
    preview = preview_cover(work(), CoverQuery(**dict(wanted)))
    if not form.has_shown(wanted):
        return preview
    cover_shifts(work(), wanted)
    return f"{wanted.user} covers you. An override was added to each schedule."
