"""The /admin/queues page: all delivery queues, failing destinations, and given-up messages."""

from collections.abc import Callable
from http import HTTPStatus

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.pagination import MAX_ID
from domain.core.errors import ConflictError, NotFoundError
from domain.delivery.mail.failing_mail import list_abandoned_emails
from domain.housekeeping.queues import (
    QueueDestination,
    QueueQuery,
    give_up_destination,
    list_failing_queue_destinations,
    list_queues,
    retry_destination,
)
from domain.paging.notifications.message_queue_state import (
    get_message_queue_state,
    requeue_message,
)
from web.access.decorators import administrator_required
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import get_list_query
from web.services import get_current_time

queues = Blueprint("queues", __name__)
#: Maximum number of failing destinations that the page shows.
_MAX_SHOWN = 100


@queues.get("/queues")
@administrator_required
def index() -> ResponseReturnValue:
    """Show all queues, failing destinations and failed messages."""
    get_list_query()
    work, session, now = get_unit_of_work(), db.session(), get_current_time()
    return render_template(
        "admin/queues/index.html",
        queues=list_queues(work, QueueQuery(per_page=_MAX_SHOWN)).items,
        failing=list_failing_queue_destinations(work, QueueQuery(per_page=_MAX_SHOWN)),
        messages=get_message_queue_state(session=session, now=now),
        emails=list_abandoned_emails(session=session, now=now),
    )


@queues.get("/notifications")
@administrator_required
def former_index() -> ResponseReturnValue:
    """Redirect from the former address of the page."""
    return redirect(url_for("admin.queues.index"), HTTPStatus.MOVED_PERMANENTLY)


@queues.post("/queues/<kind>/<destination_id>/retry")
@administrator_required
def retry(kind: str, destination_id: str) -> ResponseReturnValue:
    """Retry a failing destination immediately."""
    return _change_destination(
        lambda: retry_destination(get_unit_of_work(), kind, destination_id),
        "Retrying now. Reload this page in a moment to see the result.",
    )


@queues.post("/queues/<kind>/<destination_id>/give_up")
@administrator_required
def give_up(kind: str, destination_id: str) -> ResponseReturnValue:
    """Give up the waiting items of a failing destination."""
    return _change_destination(
        lambda: give_up_destination(get_unit_of_work(), kind, destination_id),
        "Given up. No further attempt is made.",
    )


def _change_destination(change: Callable[[], QueueDestination], done: str) -> ResponseReturnValue:
    try:
        change()
    except (ConflictError, NotFoundError) as error:
        flash(str(error), "warning")
    else:
        flash(done)
    return redirect(url_for("admin.queues.index"))


@queues.post(f"/queues/messages/<int(max={MAX_ID}):message_id>/send_again", endpoint="send_again")
@administrator_required
def queue_again(message_id: int) -> ResponseReturnValue:
    """Queue a failed message again."""
    if requeue_message(get_unit_of_work(), message_id):
        flash("The message is being sent again, without alerts that no longer need attention.")
    else:
        flash("This message has not failed or is already being sent.", "warning")
    return redirect(url_for("admin.queues.index"))
