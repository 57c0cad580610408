"""The /admin/audit_streams page: destinations that receive every audit event."""

from flask import Blueprint, flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.delivery.audit_streams import actions
from domain.delivery.audit_streams.streams import MAX_STREAMS
from domain.delivery.audit_streams.types import AuditStreamBody, AuditStreamChangeBody
from domain.delivery.destination_types import DestinationQuery, SecretRotationBody
from forms.webhooks import DestinationForm, SecretRotationForm
from web.access.decorators import administrator_required
from web.http.unit_of_work import get_unit_of_work
from web.pages.delivery_test_notices import flash_delivery_test_result
from web.pages.form_pages import render_form_page
from web.pages.list_query import get_list_query
from web.sealing.sealed_values import store_one_time_secret, take_one_time_secret
from web.services import get_settings

audit_streams = Blueprint("audit_streams", __name__, url_prefix="/audit_streams")
_SECRET_NAME = "audit stream"  # noqa: S105 - a name


@audit_streams.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """List the destinations of audit events."""
    get_list_query()
    found = actions.list_streams(get_unit_of_work(), DestinationQuery(per_page=MAX_STREAMS))
    return render_template("admin/audit_streams/index.html", streams=found.items)


@audit_streams.route("/new", methods=["GET", "POST"])
@administrator_required
def new() -> ResponseReturnValue:
    """Create a destination and show its secret."""
    form = DestinationForm()
    made = form.run_if_valid(
        lambda: actions.create_stream(get_unit_of_work(), form.build_entered_body(AuditStreamBody))
    )
    if made is not None:
        store_one_time_secret(_SECRET_NAME, made.id, made.secret)
        return _redirect_to_stream(made.id)
    return render_form_page("admin/audit_streams/new.html", form)


@audit_streams.get("/<int:stream_id>")
@administrator_required
def show(stream_id: int) -> ResponseReturnValue:
    """Show a destination, with its secret if the secret was just created or rotated."""
    return _render_show_page(stream_id)


@audit_streams.post("/<int:stream_id>/url")
@administrator_required
def change_url(stream_id: int) -> ResponseReturnValue:
    """Change the URL that future events are sent to."""
    form = DestinationForm()
    changed = form.run_if_valid(
        lambda: actions.change_stream(
            get_unit_of_work(), stream_id, form.build_entered_body(AuditStreamChangeBody)
        )
    )
    if changed is None:
        return _render_show_page(stream_id, form=form)
    flash("URL saved. Events are now sent to the new URL.")
    return _redirect_to_stream(stream_id)


@audit_streams.post("/<int:stream_id>/rotate_secret")
@administrator_required
def rotate_secret(stream_id: int) -> ResponseReturnValue:
    """Create a new secret and show it.

    The old secret stays valid for the chosen time.
    """
    form = SecretRotationForm()
    made = form.run_if_valid(
        lambda: actions.rotate_secret(
            get_unit_of_work(), stream_id, form.build_entered_body(SecretRotationBody)
        )
    )
    if made is None:
        return _render_show_page(stream_id, rotation=form)
    store_one_time_secret(_SECRET_NAME, stream_id, made.secret)
    return _redirect_to_stream(stream_id)


@audit_streams.post("/<int:stream_id>/test", endpoint="send_test")
@administrator_required
def send_test_event(stream_id: int) -> ResponseReturnValue:
    """Send a test event immediately and show the result."""
    flash_delivery_test_result(actions.send_test(get_unit_of_work(), stream_id), "test event")
    return _redirect_to_stream(stream_id)


@audit_streams.post("/<int:stream_id>/pause")
@administrator_required
def pause(stream_id: int) -> ResponseReturnValue:
    """Pause a destination, so that its events are queued until it is resumed."""
    actions.pause_stream(get_unit_of_work(), stream_id)
    flash("Destination paused. Events are queued until you resume.")
    return _redirect_to_stream(stream_id)


@audit_streams.post("/<int:stream_id>/resume")
@administrator_required
def resume(stream_id: int) -> ResponseReturnValue:
    """Resume a destination, starting with its queued events."""
    actions.resume_stream(get_unit_of_work(), stream_id)
    flash("Queued events are being sent.")
    return _redirect_to_stream(stream_id)


@audit_streams.post("/<int:stream_id>/delete")
@administrator_required
def delete(stream_id: int) -> ResponseReturnValue:
    """Delete a destination and its queued events."""
    removed = actions.delete_stream(get_unit_of_work(), stream_id)
    flash(f"Destination {removed.redacted_url} deleted.")
    return redirect(url_for("admin.audit_streams.index"))


def _render_show_page(
    stream_id: int,
    *,
    form: DestinationForm | None = None,
    rotation: SecretRotationForm | None = None,
) -> ResponseReturnValue:
    stream = actions.show_stream(get_unit_of_work(), stream_id)
    form = form or DestinationForm(url=stream.url)
    rotation = rotation or SecretRotationForm()
    page = render_template(
        "admin/audit_streams/show.html",
        stream=stream,
        form=form,
        rotation=rotation,
        secret=take_one_time_secret(_SECRET_NAME, stream_id),
        keep_days=get_settings().audit_stream_keep_days,
    )
    is_wrong = bool(form.errors or rotation.errors)
    return page, 422 if is_wrong else 200, {"Cache-Control": "no-store"}


def _redirect_to_stream(stream_id: int) -> ResponseReturnValue:
    return redirect(url_for("admin.audit_streams.show", stream_id=stream_id))
