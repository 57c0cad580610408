"""The page /admin/notifications: the queue of pages, and pages that could not be sent."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.paging import LARGEST_ID
from domain.paging.notifications.queue_state import queue_state, send_again, try_now
from web.access.decorators import administrator
from web.extensions import db
from web.http.work import work
from web.pages.list_query import list_query
from web.services import now

notifications = Blueprint("notifications", __name__, url_prefix="/notifications")


@notifications.get("")
@administrator
def index() -> ResponseReturnValue:
    """Show queued messages, failing contacts and failed messages."""
    list_query()
    state = queue_state(session=db.session(), now=now())
    return render_template("admin/notifications/index.html", state=state)


@notifications.post(f"/contacts/<int(max={LARGEST_ID}):contact_id>/retry")
@administrator
def retry(contact_id: int) -> ResponseReturnValue:
    """Retry a failing contact immediately."""
    if try_now(work(), contact_id):
        flash("Retrying now. Reload this page in a moment to see the result.")
    else:
        flash("No message is waiting for this contact.", "warning")
    return redirect(url_for("admin.notifications.index"))


@notifications.post(
    f"/messages/<int(max={LARGEST_ID}):message_id>/send_again", endpoint="send_again"
)
@administrator
def queue_again(message_id: int) -> ResponseReturnValue:
    """Queue a failed message again."""
    if send_again(work(), message_id):
        flash("The message is being sent again, without alerts that no longer need attention.")
    else:
        flash("This message has not failed or is already being sent.", "warning")
    return redirect(url_for("admin.notifications.index"))
