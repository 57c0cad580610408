"""The /-/on_call page: the user's shifts in all projects, and cover for these shifts."""

from datetime import timedelta

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.on_call.calendars import NO_STORE_HEADERS
from blueprints.paging.on_call.schedule_page import get_common_time_zone, list_cover_usernames
from domain.access.actor import UnitOfWork
from domain.core.errors import DomainError, NotFoundError
from domain.core.types.pagination import OffsetQuery
from domain.paging.contacts import actions as contact_actions
from domain.paging.contacts.types import ContactQuery
from domain.paging.on_call import calendar_feeds
from domain.paging.on_call.absences import actions as absence_actions
from domain.paging.on_call.absences.types import AbsenceQuery
from domain.paging.on_call.my_on_call import (
    MAX_TURN_LOOKBACK,
    MAX_VISIBLE_SCHEDULES,
    cover_shifts,
    list_visible_schedules,
    preview_cover,
    show_own_on_call,
)
from domain.paging.on_call.my_on_call_types import (
    CoverQuery,
    OnCallCover,
    OnCallTurn,
    OwnOnCall,
    OwnOnCallQuery,
    OwnSchedule,
)
from domain.paging.on_call.swap_requests import list_own_swap_requests
from forms.on_call import AbsenceForm, CoverForm, ImportedCalendarForm
from web.access.decorators import get_current_user, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.pages.form_pages import render_form_page
from web.pages.list_query import (
    LinkedPage,
    build_numbered_page_links,
    get_list_query,
    get_page_request,
)
from web.services import get_current_time, get_settings

own_on_call = PageBlueprint("own_on_call", __name__, url_prefix="/-/on_call")
_SHOWN_WEEKS = 6


@own_on_call.get("")
@sign_in_required
def index() -> ResponseReturnValue:
    """Show who is on call in all schedules, and the user's shifts, pages and contacts."""
    get_list_query("page")
    work = get_unit_of_work()
    found = show_own_on_call(work, OwnOnCallQuery(weeks=_SHOWN_WEEKS))
    searched = timedelta(weeks=_SHOWN_WEEKS) + MAX_TURN_LOOKBACK
    return render_template(
        "on_call/own.html",
        found=found,
        visible=list_visible_schedules(work),
        requests=list_own_swap_requests(work),
        most_visible=MAX_VISIBLE_SCHEDULES,
        weeks=_SHOWN_WEEKS,
        searched_weeks=searched // timedelta(weeks=1),
        turns=_sort_turns(found),
        absences=_list_absences(work),
        calendars=absence_actions.list_own_calendars(work, OffsetQuery()).items,
        contacts=contact_actions.list_contacts(work, ContactQuery(per_page=100)).items,
        preferences=contact_actions.show_preferences(work),
        sends_mail=bool(get_settings().mail_url),
        feed=calendar_feeds.find_feed(
            None, get_current_user().id, session=db.session(), now=get_current_time()
        ),
    )


def _list_absences(work: UnitOfWork) -> LinkedPage:
    """Return the requested page of the user's absences."""
    part = get_page_request(order_by="starts_at")
    number = part.offset // part.size + 1
    query = AbsenceQuery(per_page=part.size, page=number, order_by="starts_at", sort="asc")
    return build_numbered_page_links(absence_actions.list_absences(work, query), part)


def _sort_turns(found: OwnOnCall) -> list[tuple[OnCallTurn, OwnSchedule]]:
    return sorted(
        ((turn, each) for each in found.schedules for turn in each.turns),
        key=lambda pair: (pair[0].starts_at, pair[0].ends_at, pair[1].schedule_id),
    )


@own_on_call.post("/calendar")
@sign_in_required
def renew_calendar() -> ResponseReturnValue:
    """Create a secret URL for the user's calendar and show it once.

    The previous URL is revoked.
    """
    made = calendar_feeds.renew_own_calendar(get_unit_of_work())
    page = render_template("on_call/own_calendar_address.html", url=made.url)
    return page, 200, NO_STORE_HEADERS


@own_on_call.post("/calendar/end")
@sign_in_required
def end_calendar() -> ResponseReturnValue:
    """Revoke the secret URL of the user's calendar."""
    with show_errors_on_next_page(NotFoundError):
        calendar_feeds.revoke_own_calendar(get_unit_of_work())
        flash("The calendar URL was revoked.")
    return redirect(url_for("own_on_call.index"))


@own_on_call.route("/absences/new", methods=["GET", "POST"])
@sign_in_required
def new_absence() -> ResponseReturnValue:
    """Add a period in which the user is absent."""
    form, zone = AbsenceForm(), get_current_user().time_zone
    if form.run_if_valid(
        lambda: absence_actions.create_absence(get_unit_of_work(), form.build_absence(zone))
    ):
        flash("Absence added.")
        return redirect(url_for("own_on_call.index", _anchor="absences"))
    return render_form_page("on_call/absence_form.html", form)


@own_on_call.post("/absences/<int:absence_id>/delete")
@sign_in_required
def delete_absence(absence_id: int) -> ResponseReturnValue:
    """Delete an absence that the user entered."""
    with show_errors_on_next_page(DomainError):
        absence_actions.delete_absence(get_unit_of_work(), absence_id)
        flash("Absence deleted.")
    return redirect(url_for("own_on_call.index", _anchor="absences"))


@own_on_call.route("/absence_calendars/new", methods=["GET", "POST"])
@sign_in_required
def new_absence_calendar() -> ResponseReturnValue:
    """Add a calendar of the user's absences, from a URL or a file."""
    form = ImportedCalendarForm()
    if form.run_if_valid(
        lambda: absence_actions.create_own_calendar(get_unit_of_work(), form.entered_calendar)
    ):
        flash("Calendar added.")
        return redirect(url_for("own_on_call.index", _anchor="absences"))
    return render_form_page("on_call/absence_calendar_form.html", form)


@own_on_call.post("/absence_calendars/<int:calendar_id>/<any(refresh, delete):change>")
@sign_in_required
def change_absence_calendar(calendar_id: int, change: str) -> ResponseReturnValue:
    """Refresh or remove a calendar of the user's absences."""
    with show_errors_on_next_page(DomainError):
        act, sentence = absence_actions.delete_own_calendar, "Calendar removed."
        if change == "refresh":
            act = absence_actions.refresh_own_calendar
            sentence = "The calendar is read within a minute."
        act(get_unit_of_work(), calendar_id)
        flash(sentence)
    return redirect(url_for("own_on_call.index", _anchor="absences"))


@own_on_call.route("/cover", methods=["GET", "POST"])
@sign_in_required
def cover() -> ResponseReturnValue:
    """Preview a cover of the user's shifts by another user, or create the cover."""
    given = get_list_query("schedule", "turn")
    schedules = show_own_on_call(get_unit_of_work(), OwnOnCallQuery(weeks=_SHOWN_WEEKS)).schedules
    form = CoverForm(
        schedules=schedules,
        names=list_cover_usernames(schedules),
        time_zone=get_common_time_zone(schedules),
        what=given.get("turn") or given.get("schedule"),
    )
    preview = form.run_if_valid(lambda: _preview_or_cover(form)) if form.is_submitted() else None
    if isinstance(preview, str):
        flash(preview)
        return redirect(url_for("own_on_call.index"))
    return render_form_page(
        "on_call/cover.html", form, preview=preview, zone=get_common_time_zone(schedules)
    )


def _preview_or_cover(form: CoverForm) -> OnCallCover | str:
    """Return a preview of the cover, or create the cover if its preview was already shown."""
    wanted = form.entered_cover
    preview = preview_cover(get_unit_of_work(), CoverQuery(**dict(wanted)))
    if not form.check_and_mark_cover_shown(wanted):
        return preview
    cover_shifts(get_unit_of_work(), wanted)
    return f"{wanted.user} covers you. An override was added to each schedule."
