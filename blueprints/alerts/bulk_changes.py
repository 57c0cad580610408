"""Steps of changing several alerts, which a project's list and that of all projects share."""

from urllib.parse import parse_qsl, urlencode

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from blueprints.alerts.list_pages import AlertList
from domain.alerts.handling.batches import (
    BatchOrder,
    BatchView,
    change_all_matching,
    change_selected,
)
from domain.alerts.handling.status import StatusChange, StatusChangeResult
from domain.audit.events import Actor
from domain.database.paging import parse_id
from domain.projects.access import COUNT_LIMIT
from web.access.marks import get_current_user
from web.extensions import db
from web.pages.templating import pluralize, visible
from web.services import now


def list_arguments() -> MultiDict[str, str]:
    """Return the arguments of the list that the form was on."""
    return MultiDict(parse_qsl(request.form.get("back", "")))


def change_alerts(listing: AlertList, *, field: str, largest: int) -> ResponseReturnValue:
    """Change the selected alerts, or all that match: these only after a question.

    `field` is the form's name of a selected alert's number, which is at most `largest`.
    """
    order = BatchOrder(
        status=request.form.get("status", ""),
        by=me(),
        project_id=listing.project.id if listing.project else None,
        list_query=urlencode(listing.query.arguments),
    )
    if "every" in request.form:
        return _change_every(listing, order)
    numbers = [parse_id(text) for text in request.form.getlist(field)]
    selected = [number for number in numbers if number is not None and number <= largest]
    batch, outcome = change_selected(order, selected, session=db.session(), now=now())
    _flash_outcome(outcome, batch)
    return redirect(listing.url(**listing.query.arguments))


def _change_every(listing: AlertList, order: BatchOrder) -> ResponseReturnValue:
    change: StatusChange = order.change
    if "confirmed" not in request.form:
        return render_template(
            "alerts/confirm_change.html",
            listing=listing,
            project=listing.project,
            status=change.status,
            back=order.list_query,
        )
    total = listing.total
    batch = change_all_matching(
        order,
        listing.query.wanted,
        path=listing.query.project,
        matched=total if total is not None and total <= COUNT_LIMIT else None,
        session=db.session(),
        now=now(),
    )
    return after_batch(batch, listing.url(**listing.query.arguments))


def after_batch(batch: BatchView, list_url: str) -> ResponseReturnValue:
    """Return to the list with the result, or to the page that shows how far it is."""
    if batch.is_under_way:
        return redirect(url_for("alert_batches.show", batch_id=batch.id))
    flash_batch(batch)
    return redirect(list_url)


def flash_batch(batch: BatchView) -> None:
    """Say what became of a batch that is finished."""
    if batch.restored or batch.kept:
        flash(f"{pluralize(batch.restored, 'alert')} {_is(batch.restored)} as before.")
        if batch.kept:
            changed = f"{pluralize(batch.kept, 'alert')} {_is(batch.kept)} left as "
            it_is = "it is" if batch.kept == 1 else "they are"
            flash(f"{changed}{it_is}: changed since.", "warning")
        return
    flash_change(_done(batch.changed, batch.status), batch)
    if batch.left:
        flash(
            f"{pluralize(batch.left, 'alert')} {_is(batch.left)} left as before: "
            "another open alert has the same fingerprint.",
            "error",
        )


def flash_change(text: str, batch: BatchView) -> None:
    """Show a result with a button that takes the change back (templates/layout.html)."""
    if batch.can_be_undone:
        flash(text, "undo:" + url_for("alert_batches.undo", batch_id=batch.id))
    else:
        flash(text)


def _flash_outcome(outcome: StatusChangeResult, batch: BatchView) -> None:
    if outcome.done:
        flash_change(_done(len(outcome.done), batch.status), batch)
    if outcome.conflicts:
        names = ", ".join(f"#{iid} “{visible(title)}”" for iid, title in outcome.conflicts)
        flash(
            f"Left as {'it was' if len(outcome.conflicts) == 1 else 'they were'}: {names}. "
            "Another open alert has the same fingerprint.",
            "error",
        )
    if not (outcome.done or outcome.conflicts):
        flash("Select alerts first.", "warning")


def _done(number: int, status: str) -> str:
    return f"{pluralize(number, 'alert')} {_is(number)} {status} now."


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def me() -> Actor:
    """Return the user as the actor of a change."""
    return Actor(id=get_current_user().id, name=get_current_user().username)
