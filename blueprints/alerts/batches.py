"""/-/alert_changes: how far a change of many alerts is, and what takes it back."""

from urllib.parse import parse_qsl

from flask import render_template, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from blueprints.alerts.bulk_changes import after_batch
from domain.alerts.handling.batch_actions import undo_batch
from domain.alerts.handling.batches import BatchView, get_batch
from forms.alerts import read_query, read_query_across
from web.access.marks import get_current_user, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.services import now

alert_batches = PageBlueprint("alert_batches", __name__, url_prefix="/-/alert_changes")


@alert_batches.get("/<int:batch_id>")
@signed_in
def show(batch_id: int) -> ResponseReturnValue:
    """Show how far a change of the user is; the script of the page asks again and again."""
    batch = get_batch(batch_id, get_current_user().id, session=db.session(), now=now())
    return render_template("alerts/batch.html", batch=batch, list_url=_list_url(batch))


@alert_batches.post("/<int:batch_id>/undo")
@signed_in
def undo(batch_id: int) -> ResponseReturnValue:
    """Give the alerts their statuses again, unless somebody changed them since."""
    batch = get_batch(batch_id, get_current_user().id, session=db.session(), now=now())
    return after_batch(undo_batch(work(), batch_id), _list_url(batch))


def _list_url(batch: BatchView) -> str:
    """Return the address of the list that the change was made in."""
    given = MultiDict(parse_qsl(batch.list_query))
    if batch.project_path is None:
        return url_for("all_alerts.index", **read_query_across(given).arguments)
    arguments = read_query(given, project_id=0).arguments
    return url_for("alerts.index", project_path=batch.project_path, **arguments)
