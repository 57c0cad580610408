"""The user settings page for sign-ins and audit events of the user's account."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.lifecycle import own_account
from domain.accounts.sign_in.sessions import list_sign_ins
from domain.audit.log import EventFilter, fetch_event_page
from domain.oauth.clients.user_agents import describe_device
from web.access.decorators import get_current_user, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)
from web.services import get_current_time

activity = PageBlueprint("activity", __name__, url_prefix="/-/user_settings/activity")


@activity.get("")
@sign_in_required
def index() -> ResponseReturnValue:
    """List the user's sign-ins and the audit events of their account."""
    me, session = get_current_user(), db.session()
    get_list_query(*CURSOR_PARAMETERS)
    found = fetch_event_page(
        EventFilter(user_id=me.id), get_requested_keyset_range(), session=session
    )
    sign_ins = list_sign_ins(
        me.id, asked_from=me.sign_in_id, session=session, now=get_current_time()
    )
    return render_template(
        "activity/index.html",
        page=build_page_links(found),
        sign_ins=sign_ins,
        in_words=describe_device,
    )


@activity.post("/sign_ins/<int:sign_in_id>/end")
@sign_in_required
def end(sign_in_id: int) -> ResponseReturnValue:
    """Sign the user out of one browser."""
    words = own_account.end_own_sign_in(get_unit_of_work(), sign_in_id)
    flash(f"You are signed out of {words}.")
    return redirect(url_for("activity.index"))


@activity.post("/sign_ins/end_others")
@sign_in_required
def end_others() -> ResponseReturnValue:
    """Sign the user out of all other browsers."""
    own_account.end_other_sign_ins(get_unit_of_work(), get_current_user().sign_in_id)
    flash("You are signed out everywhere else.")
    return redirect(url_for("activity.index"))
