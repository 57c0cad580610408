"""Pages for the notification channels of projects and groups."""

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.notifications.shared import build_empty_form, flash_test_result
from domain.core.database.paging import MAX_ID
from domain.core.errors import ConflictError
from domain.paging.contacts import actions
from domain.paging.contacts.types import ChannelQuery
from domain.projects.views import ProjectOrGroup
from forms.contacts import ContactForm
from web.access.decorators import permission_required
from web.http.endpoints import NamespaceBlueprint
from web.http.work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.pages.form_pages import render_form_page
from web.pages.list_query import get_list_query
from web.services import get_settings

channels = NamespaceBlueprint("channels", __name__, below="settings/channels")
_CHANNEL_PATH = f"/<int(max={MAX_ID}):channel_id>"


@channels.get("")
@permission_required("notification_channels.index")
def index(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Show the channels of a project or group, and the channels of its ancestor groups."""
    get_list_query()
    return _render_page(holder)


@channels.post("")
@permission_required("notification_channels.create")
def create(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Add a channel."""
    form = ContactForm()
    made = form.run_if_valid(
        lambda: actions.create_channel(get_unit_of_work(), holder, form.entered_contact)
    )
    if made is None:
        return _render_page(holder, form)
    flash("Channel added. Send a test message to check that messages arrive.")
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


def _render_page(holder: ProjectOrGroup, form: ContactForm | None = None) -> ResponseReturnValue:
    form = form or build_empty_form()
    query = ChannelQuery(per_page=100, include_ancestor_groups=True)
    found = actions.list_channels(get_unit_of_work(), holder, query).items
    own = holder.path if holder.is_group else None
    return render_form_page(
        "notifications/channels.html",
        form,
        holder=holder,
        contacts=[each for each in found if each.group == own],
        above=[each for each in found if each.group != own],
        sends_mail=bool(get_settings().mail_url),
    )


def _redirect_to_list(holder: ProjectOrGroup) -> ResponseReturnValue:
    return redirect(url_for("channels.index", **holder.url_values))
