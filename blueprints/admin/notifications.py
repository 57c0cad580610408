"""The /admin/notifications page: queued messages, and messages that could not be sent."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.pagination import MAX_ID
from domain.paging.notifications.message_queue_state import (
    get_queue_state,
    requeue_message,
    retry_contact_now,
)
from web.access.decorators import administrator_required
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import get_list_query
from web.services import get_current_time

notifications = Blueprint("notifications", __name__, url_prefix="/notifications")


@notifications.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """Show queued messages, failing contacts and failed messages."""
    get_list_query()
    state = get_queue_state(session=db.session(), now=get_current_time())
    return render_template("admin/notifications/index.html", state=state)


@notifications.post(f"/contacts/<int(max={MAX_ID}):contact_id>/retry")
@administrator_required
def retry(contact_id: int) -> ResponseReturnValue:
    """Retry messages to a failing contact immediately."""
    if retry_contact_now(get_unit_of_work(), contact_id):
        flash("Retrying now. Reload this page in a moment to see the result.")
    else:
        flash("No message is waiting for this contact.", "warning")
    return redirect(url_for("admin.notifications.index"))


@notifications.post(f"/messages/<int(max={MAX_ID}):message_id>/send_again", endpoint="send_again")
@administrator_required
def queue_again(message_id: int) -> ResponseReturnValue:
    """Queue a failed message again."""
    if requeue_message(get_unit_of_work(), message_id):
        flash("The message is being sent again, without alerts that no longer need attention.")
    else:
        flash("This message has not failed or is already being sent.", "warning")
    return redirect(url_for("admin.notifications.index"))
