"""Pages for the notification channels of projects and groups."""

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.notifications.contact_forms import (
    build_contact_change_form,
    build_gallery_context,
    build_new_contact_form,
    flash_test_result,
    read_gallery_query,
    render_service_page,
)
from domain.core.database.pagination import MAX_ID
from domain.core.errors import ConflictError
from domain.paging.contacts import actions
from domain.paging.contacts.types import ChannelQuery
from domain.projects.views import ProjectOrGroup
from forms.contacts import ContactForm
from web.access.decorators import permission_required
from web.http.endpoints import NamespaceBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page

channels = NamespaceBlueprint("channels", __name__, below="settings/channels")
_CHANNEL_PATH = f"/<int(max={MAX_ID}):channel_id>"


@channels.get("")
@permission_required("notification_channels.index")
def index(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Show the channels of a project or group and its ancestors, or the form for a new channel."""
    service, search = read_gallery_query()
    if service:
        return _render_new_page(holder, build_new_contact_form(service))
    query = ChannelQuery(per_page=100, include_ancestor_groups=True)
    found = actions.list_channels(get_unit_of_work(), holder, query).items
    own = holder.path if holder.is_group else None
    return render_template(
        "notifications/channels.html",
        holder=holder,
        contacts=[each for each in found if each.group == own],
        above=[each for each in found if each.group != own],
        **build_gallery_context(search, found),
    )


@channels.post("")
@permission_required("notification_channels.create")
def create(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Add a notification channel to a project or group."""
    form = build_new_contact_form(request.form.get("service", ""))
    made = form.run_if_valid(
        lambda: actions.create_channel(get_unit_of_work(), holder, form.entered_contact)
    )
    if made is None:
        return _render_new_page(holder, form)
    flash("Channel added. Send a test message to check that messages arrive.")
    return _redirect_to_list(holder)


@channels.route(_CHANNEL_PATH, methods=["GET", "POST"])
@permission_required("notification_channels.change")
def edit(holder: ProjectOrGroup, channel_id: int) -> ResponseReturnValue:
    """Show the form for a channel, and change the channel."""
    channel = actions.show_channel(get_unit_of_work(), holder, channel_id)
    form = build_contact_change_form(channel)
    changed = form.run_if_valid(
        lambda: actions.change_channel(get_unit_of_work(), holder, channel_id, form.entered_change)
    )
    if changed is None:
        return render_service_page(form, **_build_frame_context(holder))
    flash("Channel saved. Send a test message to check that messages arrive.")
    return _redirect_to_list(holder)


@channels.post(f"{_CHANNEL_PATH}/test", endpoint="send_test")
@permission_required("notification_channels.send_test")
def send_test_message(holder: ProjectOrGroup, channel_id: int) -> ResponseReturnValue:
    """Send a test message and show the result."""
    flash_test_result(actions.send_channel_test(get_unit_of_work(), holder, channel_id))
    return _redirect_to_list(holder)


@channels.post(f"{_CHANNEL_PATH}/delete")
@permission_required("notification_channels.delete")
def delete(holder: ProjectOrGroup, channel_id: int) -> ResponseReturnValue:
    """Delete a channel."""
    with show_errors_on_next_page(ConflictError):
        gone = actions.delete_channel(get_unit_of_work(), holder, channel_id)
        flash(f"The channel “{gone.label}” was deleted.")
    return _redirect_to_list(holder)


def _render_new_page(holder: ProjectOrGroup, form: ContactForm) -> ResponseReturnValue:
    create = url_for("channels.create", **holder.url_values)
    return render_service_page(form, create=create, **_build_frame_context(holder))


def _build_frame_context(holder: ProjectOrGroup) -> dict[str, Any]:
    return {
        "holder": holder,
        "frame": "groups/frame.html" if holder.is_group else "projects/frame.html",
        "back": url_for("channels.index", **holder.url_values),
    }


def _redirect_to_list(holder: ProjectOrGroup) -> ResponseReturnValue:
    return redirect(url_for("channels.index", **holder.url_values))
