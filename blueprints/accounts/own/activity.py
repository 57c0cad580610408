"""The user settings page for sign-ins and audit events of the user's account."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.lifecycle import own_account
from domain.accounts.signing_in.sessions import list_sign_ins
from domain.audit.log import EventFilter, page_of_events
from domain.oauth.clients.user_agents import device_in_words
from web.access.decorators import get_current_user, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.list_query import CURSORS, asked_slice, list_query, page_links
from web.services import now

activity = PageBlueprint("activity", __name__, url_prefix="/-/user_settings/activity")


@activity.get("")
@signed_in
def index() -> ResponseReturnValue:
    """List the user's sign-ins and the audit events of their account."""
    me, session = get_current_user(), db.session()
    list_query(*CURSORS)
    found = page_of_events(EventFilter(user_id=me.id), asked_slice(), session=session)
    sign_ins = list_sign_ins(me.id, asked_from=me.sign_in_id, session=session, now=now())
    return render_template(
        "activity/index.html", page=page_links(found), sign_ins=sign_ins, in_words=device_in_words
    )


@activity.post("/sign_ins/<int:sign_in_id>/end")
@signed_in
def end(sign_in_id: int) -> ResponseReturnValue:
    """Sign the user out of one browser."""
    words = own_account.end_sign_in(work(), sign_in_id)
    flash(f"You are signed out of {words}.")
    return redirect(url_for("activity.index"))


@activity.post("/sign_ins/end_others")
@signed_in
def end_others() -> ResponseReturnValue:
    """Sign the user out of all other browsers."""
    own_account.end_other_sign_ins(work(), get_current_user().sign_in_id)
    flash("You are signed out everywhere else.")
    return redirect(url_for("activity.index"))
