"""/-/on_call: when and where the user is on call, in all projects, and who covers them."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.contacts import actions as contact_actions
from domain.contacts.types import ContactQuery
from domain.on_call.own_actions import cover_shifts, preview_cover, show_own_on_call
from domain.on_call.types import CoverQuery, OnCallCover, OwnOnCallQuery
from forms.on_call import CoverForm
from web.access.marks import signed_in
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.on_call import names_who_cover, zone_of
from web.pages.form_pages import form_page
from web.pages.list_query import list_query
from web.services import settings

own_on_call = PageBlueprint("own_on_call", __name__, url_prefix="/-/on_call")
_WEEKS = 6


@own_on_call.get("")
@signed_in
def index() -> ResponseReturnValue:
    """Show where the user is on call, their next turns, what paged them, and their contacts."""
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
    )


@own_on_call.route("/cover", methods=["GET", "POST"])
@signed_in
def cover() -> ResponseReturnValue:
    """Let somebody cover the user, after a look at the shifts that this takes over."""
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
    """Return what is to be covered, or, of what the page has shown, what was done."""
    wanted = form.cover
    preview = preview_cover(work(), CoverQuery(**dict(wanted)))
    if not form.has_shown(wanted):
        return preview
    cover_shifts(work(), wanted)
    return f"{wanted.user} covers you. An override stands in each of the schedules."
