"""The page /admin/audit_streams: destinations that receive every audit event."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.delivery.audit_streams import actions
from domain.delivery.audit_streams.streams import MOST_STREAMS
from domain.delivery.audit_streams.types import AuditStreamBody, AuditStreamChangeBody
from domain.delivery.destination_types import DestinationQuery, SecretRotationBody
from forms.webhooks import DestinationForm, SecretRotationForm
from web.access.decorators import administrator
from web.http.work import work
from web.pages.form_pages import form_page
from web.pages.list_query import list_query
from web.pages.sent_tests import say_sent
from web.sealing.sealer import keep_one_time_secret, take_one_time_secret
from web.services import settings

audit_streams = Blueprint("audit_streams", __name__, url_prefix="/audit_streams")
_SECRET = "audit stream"  # noqa: S105 - a name


@audit_streams.get("")
@administrator
def index() -> ResponseReturnValue:
    """List the destinations."""
    list_query()
    found = actions.list_streams(work(), DestinationQuery(per_page=MOST_STREAMS))
    return render_template("admin/audit_streams/index.html", streams=found.items)


@audit_streams.route("/new", methods=["GET", "POST"])
@administrator
def new() -> ResponseReturnValue:
    """Create a destination and show its secret."""
    form = DestinationForm()
    made = form.carry_out(lambda: actions.create_stream(work(), form.read(AuditStreamBody)))
    if made is not None:
        keep_one_time_secret(_SECRET, made.id, made.secret)
        return _back_to(made.id)
    return form_page("admin/audit_streams/new.html", form)


@audit_streams.get("/<int:stream_id>")
@administrator
def show(stream_id: int) -> ResponseReturnValue:
    """Show a destination, with its secret if it was just created or rotated."""
    return _show_page(stream_id)


@audit_streams.post("/<int:stream_id>/url")
@administrator
def change_url(stream_id: int) -> ResponseReturnValue:
    """Change the URL that future events are sent to."""
    form = DestinationForm()
    changed = form.carry_out(
        lambda: actions.change_stream(work(), stream_id, form.read(AuditStreamChangeBody))
    )
    if changed is None:
        return _show_page(stream_id, form=form)
    flash("URL saved. Events are now sent to the new URL.")
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/rotate_secret")
@administrator
def rotate_secret(stream_id: int) -> ResponseReturnValue:
    """Create a new secret and show it; the old secret stays valid for the chosen time."""
    form = SecretRotationForm()
    made = form.carry_out(
        lambda: actions.rotate_secret(work(), stream_id, form.read(SecretRotationBody))
    )
    if made is None:
        return _show_page(stream_id, rotation=form)
    keep_one_time_secret(_SECRET, stream_id, made.secret)
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/test", endpoint="send_test")
@administrator
def send_test_event(stream_id: int) -> ResponseReturnValue:
    """Send a test event immediately and show the result."""
    say_sent(actions.send_test(work(), stream_id), "test event")
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/pause")
@administrator
def pause(stream_id: int) -> ResponseReturnValue:
    """Stop sending to a destination."""
    actions.pause_stream(work(), stream_id)
    flash("Destination paused. Events are queued until you resume.")
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/resume")
@administrator
def resume(stream_id: int) -> ResponseReturnValue:
    """Resume sending, starting with the queued events."""
    actions.resume_stream(work(), stream_id)
    flash("Queued events are being sent.")
    return _back_to(stream_id)


@audit_streams.post("/<int:stream_id>/delete")
@administrator
def delete(stream_id: int) -> ResponseReturnValue:
    """Delete a destination and its queued events."""
    removed = actions.delete_stream(work(), stream_id)
    flash(f"Destination {removed.shown_url} deleted.")
    return redirect(url_for("admin.audit_streams.index"))


def _show_page(
    stream_id: int,
    *,
    form: DestinationForm | None = None,
    rotation: SecretRotationForm | None = None,
) -> ResponseReturnValue:
    stream = actions.show_stream(work(), stream_id)
    form = form or DestinationForm(url=stream.url)
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
