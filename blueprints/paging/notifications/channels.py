"""Pages for the notification channels of projects and groups."""

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.notifications.shared import empty_form, say_result
from domain.core.database.paging import LARGEST_ID
from domain.core.errors import ConflictError
from domain.paging.contacts import actions
from domain.paging.contacts.types import ChannelQuery
from domain.projects.views import Holder
from forms.contacts import ContactForm
from web.access.decorators import permitted
from web.http.endpoints import NamespaceBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.form_pages import form_page
from web.pages.list_query import list_query
from web.services import settings

channels = NamespaceBlueprint("channels", __name__, below="settings/channels")
_ONE = f"/<int(max={LARGEST_ID}):channel_id>"


@channels.get("")
@permitted("notification_channels.index")
def index(holder: Holder) -> ResponseReturnValue:
    """Show the channels of a project or group, and the channels of its ancestor groups."""
    list_query()
    return _show_page(holder)


@channels.post("")
@permitted("notification_channels.create")
def create(holder: Holder) -> ResponseReturnValue:
    """Add a channel."""
    form = ContactForm()
    made = form.carry_out(lambda: actions.create_channel(work(), holder, form.contact))
    if made is None:
        return _show_page(holder, form)
    flash("Channel added. Send a test message to check that messages arrive.")
    return _back(holder)


@channels.post(f"{_ONE}/test", endpoint="send_test")
@permitted("notification_channels.send_test")
def send_test_message(holder: Holder, channel_id: int) -> ResponseReturnValue:
    """Send a test message and show the result."""
    say_result(actions.send_channel_test(work(), holder, channel_id))
    return _back(holder)


@channels.post(f"{_ONE}/delete")
@permitted("notification_channels.delete")
def delete(holder: Holder, channel_id: int) -> ResponseReturnValue:
    """Delete a channel."""
    with refusals_shown(ConflictError):
        gone = actions.delete_channel(work(), holder, channel_id)
        flash(f"The channel “{gone.label}” was deleted.")
    return _back(holder)


def _show_page(holder: Holder, form: ContactForm | None = None) -> ResponseReturnValue:
    form = form or empty_form()
    query = ChannelQuery(per_page=100, include_ancestor_groups=True)
    found = actions.list_channels(work(), holder, query).items
    own = holder.path if holder.is_group else None
    return form_page(
        "notifications/channels.html",
        form,
        holder=holder,
        contacts=[each for each in found if each.group == own],
        above=[each for each in found if each.group != own],
        sends_mail=bool(settings().mail_url),
    )


def _back(holder: Holder) -> ResponseReturnValue:
    return redirect(url_for("channels.index", **holder.url_values))
