"""/admin/audit_streams: destinations that get every audit event."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.audit.events import Actor
from domain.audit.streaming.destinations import list_streams
from domain.errors import InvalidError
from forms.audit_stream import AuditStreamForm, SecretRotationForm
from web.access.marks import administrator, get_current_user
from web.audit import streams
from web.extensions import db
from web.pages.list_query import list_query
from web.sealing.one_time_secrets import keep_one_time_secret, take_one_time_secret
from web.services import now, settings

audit_streams = Blueprint("audit_streams", __name__, url_prefix="/audit_streams")
_SECRET = "audit stream"  # noqa: S105 - a name


@audit_streams.get("")
@administrator
def index() -> ResponseReturnValue:
    """List the destinations."""
    list_query()
    found = list_streams(session=db.session(), now=now())
    return render_template("admin/audit_streams/index.html", streams=found)


@audit_streams.route("/new", methods=["GET", "POST"])
@administrator
def new() -> ResponseReturnValue:
    """Create a destination and show its secret."""
    form = AuditStreamForm()
    if form.validate_on_submit():
        try:
            made = streams.create(form.url.data or "")
        except InvalidError as error:
            form.object_to(error.field, str(error))
        else:
            keep_one_time_secret(_SECRET, made.stream.id, made.secret)
            return _back_to(made.stream.id)
    page = render_template("admin/audit_streams/new.html", form=form)
    return page, 422 if form.errors else 200


@audit_streams.get("/<int:stream_id>")
@administrator
def show(stream_id: int) -> ResponseReturnValue:
    """Show a destination, with its secret right after its creation or rotation."""
    return _show_page(stream_id)


@audit_streams.post("/<int:stream_id>/url")
@administrator
def change_url(stream_id: int) -> ResponseReturnValue:
    """Send events elsewhere from now on."""
    form = AuditStreamForm()
    if not form.validate_on_submit():
        return _show_page(stream_id, form=form)
    streams.change_url(stream_id, form.url.data or "")
    flash("URL saved. Events are now sent there.")
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/rotate_secret")
@administrator
def rotate_secret(stream_id: int) -> ResponseReturnValue:
    """Create a new secret and show it; the old one signs for the chosen time."""
    rotation = SecretRotationForm()
    if not rotation.validate_on_submit():
        return _show_page(stream_id, rotation=rotation)
    made = streams.rotate(stream_id, previous_until=now() + rotation.chosen.length)
    keep_one_time_secret(_SECRET, stream_id, made.secret)
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/test", endpoint="send_test")
@administrator
def send_test_event(stream_id: int) -> ResponseReturnValue:
    """Send a test event at once, and say what came of it."""
    user = get_current_user()
    result = streams.send_test(stream_id, Actor(id=user.id, name=user.username))
    if result.problem is None:
        flash(f"Test event delivered: {result.status} after {result.milliseconds} ms.")
    else:
        flash(f"The test event was not delivered: {result.problem}.", "error")
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/pause")
@administrator
def pause(stream_id: int) -> ResponseReturnValue:
    """Stop sending to a destination."""
    streams.pause(stream_id)
    flash("Paused. Events are kept until you resume.")
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/resume")
@administrator
def resume(stream_id: int) -> ResponseReturnValue:
    """Send what waits, at once."""
    streams.resume(stream_id)
    flash("Waiting events are being sent.")
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/delete")
@administrator
def delete(stream_id: int) -> ResponseReturnValue:
    """Remove a destination with the events that wait for it."""
    removed = streams.remove(stream_id)
    flash(f"The destination {removed.shown_url} was deleted.")
    return redirect(url_for("admin.audit_streams.index"))


def _show_page(
    stream_id: int,
    *,
    form: AuditStreamForm | None = None,
    rotation: SecretRotationForm | None = None,
) -> ResponseReturnValue:
    stream = streams.get(stream_id)
    form = form or AuditStreamForm(url=stream.url)
    rotation = rotation or SecretRotationForm()
    page = render_template(
        "admin/audit_streams/show.html",
        stream=stream,
        form=form,
        rotation=rotation,
        secret=take_one_time_secret(_SECRET, stream_id),
        keep_days=settings().audit_stream_keep_days,
    )
    is_wrong = bool(form.errors or rotation.errors)
    return page, 422 if is_wrong else 200, {"Cache-Control": "no-store"}


def _back_to(stream_id: int) -> ResponseReturnValue:
    return redirect(url_for("admin.audit_streams.show", stream_id=stream_id))
